"""Security: allowed hosts, API keys, the scripts of other pages (CORS), and the page's headers."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from fastapi import Response
from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.addresses import PROBES, needs_key, path_of
from headlight.problems import Problem
from headlight.static_files import THEME_SCRIPT

KEY_HEADER = "X-API-Key"
CHALLENGE = 'Bearer realm="Headlight"'
BASIC = 'Basic realm="Headlight: the key is the password", charset="UTF-8"'
"""A browser that opens the card of a model asks its reader; calls of the API never take it.

The browser sends it by itself afterwards, which a script of another page could use (CSRF).
"""

_REQUEST_HEADERS = ["Accept", "Authorization", "Content-Type", "If-None-Match", "X-Request-ID"]
_QUOTA_HEADERS = ["RateLimit", "RateLimit-Policy", "Retry-After"]
_RESPONSE_HEADERS = ["Content-Location", "ETag", "X-Request-ID", *_QUOTA_HEADERS]


class TrustedHosts(TrustedHostMiddleware):
    """Starlette's check of the Host header, but for probes, which ask by address."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or reject it."""
        if scope["type"] == "http" and path_of(scope) in PROBES:
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class Cors(CORSMiddleware):
    """Starlette's CORS, with rejected preflights as problems.

    The browser's cookies are never accepted, so a page can only send a key its script was given.
    https://fetch.spec.whatwg.org/#http-cors-protocol
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=[*_REQUEST_HEADERS, KEY_HEADER],
            expose_headers=_RESPONSE_HEADERS,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return Starlette's answer, or a problem if the preflight is rejected."""
        response = super().preflight_response(request_headers)
        if response.status_code < 400:
            return response
        detail = f"{bytes(response.body).decode()}; HEADLIGHT_CORS_ORIGINS lists the origins"
        return Problem(400, "preflight-refused", detail, headers={"Vary": "Origin"}).response()


class KeyRing:
    """The API keys, as hashes.

    Every shown key is compared with every hash in constant time, so that the time an answer takes
    says nothing of how much of a key was right. https://www.rfc-editor.org/rfc/rfc6750
    """

    def __init__(self, keys: Iterable[SecretStr]) -> None:
        self._digests = [_digest(key.get_secret_value().encode()) for key in keys]

    def valid_key(self, keys: Iterable[bytes]) -> str | None:
        """Return a name for the first valid key among those that a request shows; None: none is."""
        key_name = None
        for key in keys:
            for digest in self._digests:
                if hmac.compare_digest(_digest(key), digest):
                    key_name = key_name or digest.hex()
        return key_name


class ApiKeys:
    """Rejects calls of the API that show no valid key.

    FastAPI's security dependencies were considered: they run per route, after the body was read.
    """

    def __init__(self, app: ASGIApp, keys: KeyRing) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or reject it."""
        if scope["type"] == "http" and needs_key(path_of(scope)):
            headers = Headers(scope=scope)
            is_page = not path_of(scope).startswith("/api/")
            keys = [*shown_keys(headers), *(typed_key(headers) if is_page else ())]
            if self.keys.valid_key(keys) is None:
                is_page &= "text/html" in headers.get("accept", "")
                raise self._rejection(keys, BASIC if is_page else CHALLENGE)
            send = _kept_by_no_proxy(send)
        await self.app(scope, receive, send)

    def _rejection(self, keys: Sequence[bytes], challenge: str) -> Problem:
        if keys:
            challenge += ', error="invalid_token"' if challenge == CHALLENGE else ""
            detail = "the API key is not valid here; ask the operator of this server for one"
            return Problem(401, "key-refused", detail, headers={"WWW-Authenticate": challenge})
        detail = f"this needs a key: send it as 'Authorization: Bearer KEY' or '{KEY_HEADER}: KEY'"
        return Problem(401, "key-missing", detail, headers={"WWW-Authenticate": challenge})


def _kept_by_no_proxy(send: Send) -> Send:
    """Return a sender that marks answers as private: no cache that others use may keep them.

    That holds for Authorization without a word (RFC 9111, section 3.5), but not for X-API-Key.
    """

    async def send_private(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            told = headers.get("cache-control", "no-cache").replace("public", "private")
            is_private = "private" in told or "no-store" in told
            headers["Cache-Control"] = told if is_private else f"private, {told}"
        await send(message)

    return send_private


def shown_keys(headers: Headers) -> Iterator[bytes]:
    """Yield the keys that a request shows, at most one of each kind."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        yield credentials.strip().encode("latin-1")
    if key := headers.get(KEY_HEADER, "").strip():
        yield key.encode("latin-1")


def typed_key(headers: Headers) -> Iterator[bytes]:
    """Yield the password of Basic authentication (RFC 7617), if a request has one."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        with suppress(ValueError):
            yield b64decode(credentials.strip(), validate=True).partition(b":")[2]


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


# Plotly sets styles on elements, which only style-src-attr allows; nothing is evaluated, nothing is
# loaded from another host, and the one inline script is named by its hash. `blob:` and `data:`
# images are what plots are saved as.
_THEME_HASH = b64encode(hashlib.sha256(THEME_SCRIPT.encode()).digest()).decode()
CONTENT_SECURITY_POLICY = (
    f"default-src 'self'; script-src 'self' 'sha256-{_THEME_HASH}'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

# Features that the page does not use. It writes to the clipboard, which is not among them.
PERMISSIONS_POLICY = (
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
    "magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), "
    "screen-wake-lock=(), usb=()"
)

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": PERMISSIONS_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeaders:
    """Adds the headers to every response that does not set them itself.

    `secure` was considered: its headers are the same dictionary, built in more lines than these.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.headers = [
            (name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                set_by_route = {name.lower() for name, _ in message["headers"]}
                safe = [header for header in self.headers if header[0] not in set_by_route]
                message = {**message, "headers": [*message["headers"], *safe]}
            await send(message)

        await self.app(scope, receive, send_with_headers)
