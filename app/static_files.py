"""Files for the browser: ours, Plotly's and Swagger UI's, all from installed packages.

A folder is served under a hash of its content, so a browser keeps each file for good and never
mixes two versions. The modules of a page are one script: `main/main.js` has what its first
drawing needs, `main/ui/share.js` what that module needs besides.
"""

import base64
import hashlib
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

from headlight import joined_scripts
from headlight.joined_scripts import SCRIPTS, joined, modules_of
from headlight.serialization.accept import negotiate_coding
from headlight.serialization.compression import SMALL, Coding, compressed
from headlight.settings import HOME

STATIC = HOME / "static"
IMMUTABLE = "public, max-age=31536000, immutable"

PAGES = {
    "main": ("main.js", "views/attention/attention.js", "ui/heads_block.js"),
    "experiments": ("experiments.js", "plot/curves.js"),
}
"""The modules that a page begins with, its own first."""

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


def _content_hash() -> str:
    digest = hashlib.sha256(Path(joined_scripts.__file__).read_bytes())
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
        headers = Headers(scope=scope)
        if scope["method"] in ("GET", "HEAD") and path in _scripts():
            response = await to_thread.run_sync(_packed, path, "text/javascript", headers)
        else:
            try:
                response = await super().get_response(path, scope)
            except (OSError, ValueError) as error:  # a name that no file can have
                raise HTTPException(404) from error
            kind = response.media_type or ""
            is_text = kind.startswith("text/") or kind in _COMPRESSIBLE
            if isinstance(response, FileResponse) and is_text:
                response = await to_thread.run_sync(
                    _packed, Path(response.path), response.media_type, headers
                )
        response.headers["Cache-Control"] = IMMUTABLE
        return response


def _packed(file: Path | str, media_type: str | None, headers: Headers) -> Response:
    """Return a file, or a script of `_scripts`, in the content coding that the browser prefers."""
    size = file.stat().st_size if isinstance(file, Path) else len(script(file))
    coding = negotiate_coding(headers, size, FILE_CODINGS)
    response = Response(_compressed_file(file, coding), media_type=media_type)
    response.headers["Vary"] = "Accept-Encoding"
    if coding != "identity":
        response.headers["Content-Encoding"] = coding
    return response


@lru_cache(maxsize=512)  # there are some 130 files, of 2 MB in one coding
def _compressed_file(file: Path | str, coding: Coding) -> bytes:
    content = file.read_bytes() if isinstance(file, Path) else script(file).encode()
    return b"".join(compressed([content], coding, SMALL))


@lru_cache(1)
def _scripts() -> frozenset[str]:
    """Return the names of the joined scripts: one for each module on each page."""
    modules = [path.relative_to(SCRIPTS).as_posix() for path in SCRIPTS.rglob("*.js")]
    return frozenset(f"{page}/{module}" for page in PAGES for module in modules)


@lru_cache(maxsize=512)
def script(name: str) -> str:
    """Return one of `_scripts`: that of a page runs it, another brings what the page's lacks."""
    page, _, module = name.partition("/")
    first = PAGES[page]
    if module == first[0]:
        return f"{joined(first)}await $need('{module}');\n"
    return joined([module], without=modules_of(first))


@lru_cache(1)
def logo() -> str:
    """Return the logo as a URL that holds it."""
    svg = (STATIC / "logo.svg").read_bytes()
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
