"""What wraps every answer: problems for all errors, and headers that keep the page safe."""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import problems

logger = logging.getLogger(__name__)

# Plotly sets styles on elements, which only style-src-attr allows; nothing is evaluated, and
# nothing is loaded from another host. `blob:` and `data:` images are what plots are saved as.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class SecurityHeaders:
    """Adds headers to every answer that does not set them itself."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str] = SECURITY_HEADERS) -> None:
        self.app = app
        self.headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to its answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    present.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)


class TrustedHosts(TrustedHostMiddleware):
    """Answers to the allowed host names alone, but to probes, which ask by address, always."""

    PROBES = frozenset({"/healthz", "/readyz"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["path"] in self.PROBES:
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class ProblemResponses:
    """Turns errors that others answer as text, and exceptions nobody expected, into problems."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; replace its answer where that is an error but no problem."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _WatchedAnswer(scope, receive, send)
        try:
            await self.app(scope, receive, answer.send)
        except Exception:
            logger.exception("an exception nobody expected")
            if answer.is_started:
                raise
            await problems.unexpected().response()(scope, receive, send)


class _WatchedAnswer:
    """One answer on its way out."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.request = Request(scope, receive)
        self.forward = send
        self.is_started = False
        self.is_replaced = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_started = True
            if _is_plain_error(message):
                await self._replace(message["status"])
        if not self.is_replaced:
            await self.forward(message)

    async def _replace(self, status: int) -> None:
        self.is_replaced = True
        problem = self._problem(status)
        await problem.response()(self.request.scope, self.request.receive, self.forward)

    def _problem(self, status: int) -> problems.Problem:
        if status == 400:  # the only one that answers it as text is TrustedHostMiddleware
            return problems.host_refused(self.request)
        return problems.problem_from_status(HTTPException(status), self.request)


def _is_plain_error(start: Mapping[str, Any]) -> bool:
    is_problem = Headers(raw=start["headers"]).get("content-type") == problems.MEDIA_TYPE
    return start["status"] >= 400 and not is_problem
