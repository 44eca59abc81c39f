"""Limits of a request's headers and of the time its body takes; Starlette limits the body's size.

The length of a text is checked by `headlight.tracing.jobs.check_texts`.

RequestLimits → BodyTimeout → starlette.middleware.body_limit.RequestBodyLimitMiddleware
"""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.errors import Problem
from headlight.settings import BODY_SECONDS, MAX_HEADER_BYTES

_WITH_BODY = {b"content-length", b"transfer-encoding"}


class RequestLimits:
    """Rejects oversized headers, and requests with both Content-Length and Transfer-Encoding.

    Of the two lengths a proxy in front may believe one and the server the other: what lies between
    would be another client's next request. https://www.rfc-editor.org/rfc/rfc9112#section-6.1
    """

    def __init__(self, app: ASGIApp, max_header_bytes: int = MAX_HEADER_BYTES) -> None:
        self.app = app
        self.max_header_bytes = max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or reject it."""
        if scope["type"] == "http":
            self._check(scope)
        await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        limit, close = self.max_header_bytes, {"Connection": "close"}
        if header_bytes(scope) > limit:
            detail = f"the target and the headers are longer than {limit:,} bytes; send less"
            raise Problem(431, "headers-too-large", detail, limit=limit, headers=close)
        headers = Headers(scope=scope)
        if "transfer-encoding" in headers and "content-length" in headers:
            detail = "Content-Length and Transfer-Encoding contradict each other; send one of them"
            raise Problem(400, "ambiguous-length", detail, headers=close)


def header_bytes(scope: Scope) -> int:
    """The bytes of a request's target and headers."""
    target = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    return target + sum(len(name) + len(value) for name, value in scope["headers"])


class BodyTimeout:
    """Rejects a body that takes too long to arrive.

    A reverse proxy does this too; without one a slow body would keep its place in the queue.
    """

    def __init__(self, app: ASGIApp, seconds: float = BODY_SECONDS) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a deadline for its body."""
        if scope["type"] == "http" and any(name in _WITH_BODY for name, _ in scope["headers"]):
            receive = self._with_deadline(receive)
        await self.app(scope, receive, send)

    def _with_deadline(self, receive: Receive) -> Receive:
        deadline = asyncio.get_running_loop().time() + self.seconds
        is_complete = False

        async def receive_in_time() -> Message:
            nonlocal is_complete
            if is_complete:  # what follows is the client's disconnect, which may come at any time
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise self._rejection() from None
            is_complete = not message.get("more_body", False)
            return message

        return receive_in_time

    def _rejection(self) -> Problem:
        detail = f"the body did not arrive within {self.seconds:g} s; send it again, and faster"
        headers = {"Connection": "close"}
        return Problem(408, "body-too-slow", detail, limit=self.seconds, headers=headers)
