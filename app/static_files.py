"""Files the browser loads: ours, Plotly's and Swagger UI's, all from installed packages.

No other host is ever asked.
"""

from importlib.metadata import version
from importlib.util import find_spec
from mimetypes import guess_type
from pathlib import Path
from stat import S_ISREG

from anyio import to_thread
from fastapi import Request, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import Scope

from headlight.file_store import FileStore
from headlight.serialization.formats import Coding
from headlight.serialization.negotiation import is_known, negotiate_coding

FILE_CODINGS: tuple[Coding, ...] = ("br", "zstd", "gzip")
"""In the order of how small they make what is compressed once."""

_COMPRESSIBLE = {"application/json", "image/svg+xml", "application/javascript"}

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


_store = FileStore()


class FreshFiles(StaticFiles):
    """Static files that a browser asks about before it uses its copy, compressed where it can.

    Modules import each other by plain names, so an old one must never meet a new one.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, or 304 where the browser's copy is the same."""
        try:
            found, facts = await to_thread.run_sync(self.lookup_path, path)
        except (OSError, ValueError) as error:  # a name that no file can have
            raise HTTPException(404) from error
        if facts is None or not S_ISREG(facts.st_mode) or scope["method"] not in ("GET", "HEAD"):
            return await super().get_response(path, scope)
        request = Request(scope)
        return await to_thread.run_sync(file_response, request, Path(found), "no-cache")


def file_response(request: Request, path: Path, cache_control: str) -> Response:
    """A file in the content coding that a browser wants; 304 where it has exactly that already.

    It blocks, so it belongs off the event loop.

    Args:
        request: what the browser takes, and has.
        path: of the file.
        cache_control: the header of that name.

    Raises:
        Problem: 406 where the browser takes the file in no coding, not even as it is.
        OSError: the file cannot be read.
    """
    media_type = guess_type(path.name)[0] or "application/octet-stream"
    is_compressible = media_type.startswith("text/") or media_type in _COMPRESSIBLE
    offered = FILE_CODINGS if is_compressible else ()
    coding = negotiate_coding(request.headers, path.stat().st_size, offered)
    file = _store.get(path, coding)
    headers = {"Cache-Control": cache_control, "ETag": file.etag, "Vary": "Accept-Encoding"}
    if is_known(file.etag, request.headers.getlist("if-none-match")):
        return Response(status_code=304, headers=headers)
    if coding != "identity":
        headers["Content-Encoding"] = coding
    return Response(file.content, headers=headers, media_type=media_type)
