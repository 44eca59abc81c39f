"""Files for the browser: ours, Plotly's and Swagger UI's, all from installed packages.

A folder is served under a hash of its content, so a browser keeps each file for good and never
mixes two versions; modules import each other by relative names, under the same hash.
"""

import base64
import hashlib
import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from anyio import to_thread
from fastapi import Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse
from starlette.types import Scope

from headlight.serialization.accept import negotiate_coding
from headlight.serialization.compression import SMALL, Coding, compressed
from headlight.settings import HOME

STATIC = HOME / "static"
SCRIPTS = STATIC / "js"
IMMUTABLE = "public, max-age=31536000, immutable"

FILE_CODINGS: tuple[Coding, ...] = ("br", "zstd", "gzip")
"""Ordered by how small they make what is compressed once."""

_COMPRESSIBLE = {"application/json", "image/svg+xml", "application/javascript"}


def package_dir(name: str) -> Path:
    """Return the folder of an installed package, without importing it.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"the package '{name}' is not installed")
    return Path(spec.submodule_search_locations[0])


def modules_of(entries: Iterable[str], imports: re.Pattern[str]) -> dict[str, str]:
    """Return the text of these modules and of all that they import, by path.

    Group 1 of `imports` is the relative address of an imported module.
    """
    texts: dict[str, str] = {}
    open_names = list(entries)
    while open_names:
        name = open_names.pop()
        if name not in texts:
            texts[name] = (SCRIPTS / name).read_text()
            open_names += [resolved(path, name) for path in imports.findall(texts[name])]
    return texts


def resolved(address: str, importer: str) -> str:
    """Resolve a relative import: `../words/text.js` in `plot/figure.js` is `words/text.js`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), address))


def _content_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(STATIC).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


STATIC_URL = f"/static/{_content_hash()}"
PLOTLY_URL = f"{STATIC_URL}/vendor/plotly/plotly.min.js"
THEME_SCRIPT = (SCRIPTS / "theme_first.js").read_text()
"""It is inline in the pages: a separate file would delay the first drawing."""
DOCS_URL = f"/docs/files/{version('fastapi-swagger')}"


class HashedFiles(StaticFiles):
    """Starlette's static files, each compressed once and cached by browsers for good.

    GZipMiddleware was considered: it compresses a file whenever it is sent, Plotly in 150 ms.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the file in the content coding that the browser prefers."""
        try:
            response = await super().get_response(path, scope)
        except (OSError, ValueError) as error:  # a name that no file can have
            raise HTTPException(404) from error
        if isinstance(response, FileResponse) and _is_compressible(response.media_type or ""):
            file, media_type = Path(response.path), response.media_type
            size = response.stat_result.st_size if response.stat_result else 0
            coding = negotiate_coding(Headers(scope=scope), size, FILE_CODINGS)
            content = await to_thread.run_sync(_compressed_file, file, coding)
            response = Response(content, media_type=media_type)
            response.headers["Vary"] = "Accept-Encoding"
            if coding != "identity":
                response.headers["Content-Encoding"] = coding
        response.headers["Cache-Control"] = IMMUTABLE
        return response


def _is_compressible(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in _COMPRESSIBLE


@lru_cache(maxsize=512)  # there are some 130 files, of 2 MB in one coding
def _compressed_file(path: Path, coding: Coding) -> bytes:
    return b"".join(compressed([path.read_bytes()], coding, SMALL))


@lru_cache(1)
def logo() -> str:
    """Return the logo as a URL that holds it."""
    svg = (STATIC / "logo.svg").read_bytes()
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
