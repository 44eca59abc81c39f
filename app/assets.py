"""Files the browser loads: ours, Plotly's and Swagger UI's, all from installed packages.

No other host is ever asked.
"""

import gzip
import hashlib
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from fastapi import Request, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

_PACKAGE = Path(__file__).resolve().parent
HOME = _PACKAGE if (_PACKAGE / "static").is_dir() else _PACKAGE.parent
"""Where `static/` and `templates/` are: in an installed package, or beside it in a checkout."""

PLOTLY_URL = f"/static/plotly.min.js?v={version('plotly')}"


def package_dir(name: str) -> Path:
    """The folder of an installed package, found without importing it.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"the package '{name}' is not installed")
    return Path(spec.submodule_search_locations[0])


class FreshFiles(StaticFiles):
    """Static files that a browser asks about before it uses its copy.

    Modules import each other by plain names, so an old one must never meet a new one. Each is sent
    whole: nobody goes on with half a script, and ten thousand ranges of one file are no question.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as if no Range had been asked for, which a server may always do."""
        headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
        await super().__call__({**scope, "headers": headers}, receive, send)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, or 304 where the browser's copy is the same."""
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        response.headers["Accept-Ranges"] = "none"
        return response


class LargeScript:
    """One large script, kept in memory plain and compressed.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def plain(self) -> bytes:
        """The file as it is."""
        return self.path.read_bytes()

    @cached_property
    def compressed(self) -> bytes:
        """The file as gzip: Plotly's 4.8 MB become 1.4."""
        return gzip.compress(self.plain, compresslevel=6, mtime=0)

    @cached_property
    def etag(self) -> str:
        """A name for the content."""
        return f'"{hashlib.sha256(self.plain).hexdigest()[:16]}"'

    def response(self, request: Request) -> Response:
        """The script, compressed where the browser takes that; 304 where it has it already."""
        headers = {
            "Cache-Control": "public, max-age=86400",
            "ETag": self.etag,
            "Vary": "Accept-Encoding",
        }
        if self.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = self.plain
        if "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = self.compressed, "gzip"
        return Response(body, headers=headers, media_type="text/javascript")
