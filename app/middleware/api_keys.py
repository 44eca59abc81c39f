"""API keys, where the operator gave some: who shows none of them is not answered.

What is compared is a hash of what was shown with the hash of every key, each in constant time and
all of them always, so that no answer's delay tells how much of which key was right.
https://www.rfc-editor.org/rfc/rfc6750
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import FastAPI
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from headlight.errors import Problem
from headlight.middleware.guarded import is_guarded

HEADER = "X-API-Key"
CHALLENGE = 'Bearer realm="Headlight"'

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": HEADER},
}


class ApiKeys:
    """Lets through who shows a key.

    Args:
        app: what is asked next.
        keys: any of which is good; without one, all are let through.
    """

    def __init__(self, app: ASGIApp, keys: Sequence[SecretStr]) -> None:
        self.app = app
        self.digests = [_digest(key.get_secret_value().encode()) for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if self.digests and is_guarded(scope):
            self._require_key(Headers(scope=scope))
        await self.app(scope, receive, send)

    def _require_key(self, headers: Headers) -> None:
        shown = list(keys_shown(headers))
        if not shown:
            detail = f"this needs a key: send it as 'Authorization: Bearer KEY' or '{HEADER}: KEY'"
            raise Problem(401, "key-missing", detail, headers={"WWW-Authenticate": CHALLENGE})
        if not self._is_any_good(shown):
            challenge = f'{CHALLENGE}, error="invalid_token"'
            detail = "the key is none that this server takes; ask whoever runs it for one"
            raise Problem(401, "key-refused", detail, headers={"WWW-Authenticate": challenge})

    def _is_any_good(self, shown: Iterable[bytes]) -> bool:
        matches = [
            hmac.compare_digest(_digest(key), digest) for key in shown for digest in self.digests
        ]
        return any(matches)


def keys_shown(headers: Headers) -> Iterable[bytes]:
    """The keys that a request shows, at most one of each kind."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        yield credentials.strip().encode("latin-1")
    if key := headers.get(HEADER, "").strip():
        yield key.encode("latin-1")


def document_keys(app: FastAPI) -> None:
    """Say in the API's description that it takes a key, so that /docs asks its reader for one."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        document = describe()
        document.setdefault("components", {})["securitySchemes"] = _SCHEMES
        document["security"] = [{scheme: []} for scheme in _SCHEMES]
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
