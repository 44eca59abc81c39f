"""Cross-origin requests, where the operator listed origins: scripts of those pages may ask the API.

Cookies and other credentials of the browser are never taken, so a page can only show a key that
its own script was given. https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from collections.abc import Sequence

from fastapi import Response
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from headlight.errors import Problem
from headlight.middleware.api_keys import HEADER

ALLOWED_HEADERS = (
    "Accept",
    "Authorization",
    "Content-Type",
    "If-None-Match",
    "X-Request-ID",
    HEADER,
)
EXPOSED_HEADERS = (
    "Content-Location",
    "ETag",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "X-Request-ID",
)
PREFLIGHT_SECONDS = 600


class Cors(CORSMiddleware):
    """Answers preflights, and names the origin that may read an answer.

    Args:
        app: what is asked next.
        origins: pages of which may ask.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=ALLOWED_HEADERS,
            expose_headers=EXPOSED_HEADERS,
            max_age=PREFLIGHT_SECONDS,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """What a browser may do, or a problem that says what it may not."""
        response = super().preflight_response(request_headers)
        if response.status_code < 400:
            return response
        detail = f"{bytes(response.body).decode()}; HEADLIGHT_CORS_ORIGINS lists the origins"
        return Problem(400, "preflight-refused", detail, headers={"Vary": "Origin"}).response()
