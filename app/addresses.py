"""Addresses of the server: the path under which a proxy has it, and the paths that need no key.

Under `/lens/` of a proxy the root path is `/lens`, which `HEADLIGHT_ROOT_PATH` or a trusted proxy's
X-Forwarded-Prefix tells. As ASGI has it, `scope["path"]` begins with it.
https://asgi.readthedocs.io/en/latest/specs/www.html#http-connection-scope

Pages name what they load relative to themselves, so they work under a path that no one told.
uvicorn's root path is put before each path, also before one whose proxy has left it there.
"""

from collections.abc import Sequence

from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from headlight.settings import ROOT_PATH

METRICS = "/metrics"
PROBES = frozenset({"/healthz", "/readyz"})
PUBLIC = PROBES | {"/", "/experiments", "/docs", "/docs/start.js", "/openapi.json"}
PUBLIC_FOLDERS = "/static/", "/docs/files/", "/s/"
"""With `PUBLIC` all that needs no key: pages without a model, their code, and probes."""

UNRATED = PUBLIC_FOLDERS[:2]
"""Of the folders those that read no file of a reader's."""

PREFIX_HEADER = "X-Forwarded-Prefix"


def path_of(scope: Scope) -> str:
    """Return the path of a request below the root path."""
    root = str(scope.get("app_root_path", scope.get("root_path", "")))  # a mount has its own
    path = str(scope["path"])
    return path[len(root) :] if root and (path + "/").startswith(root + "/") else path


def needs_key(path: str) -> bool:
    """Return True for a path below the root path that only clients with a key may read."""
    return path not in PUBLIC and not path.startswith(PUBLIC_FOLDERS)


def is_rated(path: str) -> bool:
    """Return True for a path below the root path whose requests are counted."""
    return path not in PUBLIC and not path.startswith(UNRATED)


def root_of(request: Request) -> str:
    """Return the address of the root relative to a page: `./`, or `../../` of `/models/x/card`."""
    return "../" * (path_of(request.scope).count("/") - 1) or "./"


def full_path(request: Request, name: str, **parameters: str) -> str:
    """Return the path of a route with the root path before it."""
    return f"{request.scope.get('root_path', '')}{request.app.url_path_for(name, **parameters)}"


class RootPath:
    """Puts the root path into the scope, from the settings or from a trusted proxy."""

    def __init__(self, app: ASGIApp, root_path: str, trusted: Sequence[str]) -> None:
        self.app = app
        self.root_path = root_path
        self.trusted = ProxyHeadersMiddleware(app, list(trusted)).trusted_hosts  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http" and (root := self._root_of(scope)):
            if scope["path"] == root:  # relative addresses need the slash
                await RedirectResponse(f"{root}/")(scope, receive, send)
                return
            is_whole = scope["path"].startswith(f"{root}/")
            path = scope["path"] if is_whole else root + scope["path"]
            scope = {**scope, "root_path": root, "path": path}
        await self.app(scope, receive, send)

    def _root_of(self, scope: Scope) -> str:
        client = scope.get("client")
        told = Headers(scope=scope).get(PREFIX_HEADER, "").rstrip("/")
        if told and client and client[0] in self.trusted and ROOT_PATH.fullmatch(told):
            return told
        return self.root_path
