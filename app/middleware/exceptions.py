"""Problems for every error: of Starlette's layers, of ours, and unexpected exceptions."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight import problems as errors

logger = logging.getLogger(__name__)

DISCARD_BYTES = 2**20
DISCARD_SECONDS = 1.0


class Errors:
    """Turns plain-text errors and exceptions into problems (RFC 9457).

    Starlette's ServerErrorMiddleware and ExceptionMiddleware were considered: they are the
    outermost and the innermost layer, and see no error response that a layer sends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; replace its response if that is an error but not a problem."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _Body(scope, receive)
        response = _WatchedResponse(scope, body, send)
        try:
            await self.app(scope, body.receive, response.send)
        except errors.Problem as problem:  # raised by a layer: routes have theirs answered
            if "Connection" not in (problem.headers or {}):
                await body.discard()
            await problem.response()(scope, receive, send)
        except asyncio.CancelledError:  # by uvicorn, when its time to shut down is over
            if response.is_started:
                raise
            await errors.server_stopping().response()(scope, receive, send)
        except Exception:
            logger.exception("an unexpected exception")
            if response.is_started:
                raise
            await errors.internal_error().response()(scope, receive, send)


class _Body:
    """The body of one request, as far as it has been read.

    uvicorn closes the connection after a response to a body that it did not read, and TCP then
    drops what the client has not read of the response: https://www.rfc-editor.org/rfc/rfc9112#section-9.6
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = Headers(scope=scope)
        self.is_complete = "expect" in headers or not (
            "content-length" in headers or "transfer-encoding" in headers
        )
        self._receive = receive

    async def receive(self) -> Message:
        message = await self._receive()
        self.is_complete = not message.get("more_body", False)
        return message

    async def discard(self) -> None:
        """Read the rest, for at most DISCARD_SECONDS and DISCARD_BYTES."""
        n_bytes = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DISCARD_SECONDS):
                while not self.is_complete and n_bytes < DISCARD_BYTES:
                    n_bytes += len((await self.receive()).get("body", b""))


class _WatchedResponse:
    """One response on its way out."""

    def __init__(self, scope: Scope, body: _Body, send: Send) -> None:
        self.request = Request(scope, body.receive)
        self.body = body
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
        await self.body.discard()
        if status == 400:  # only TrustedHostMiddleware answers it as text
            problem = errors.host_refused(self.request)
        else:
            problem = errors.problem_from_status(HTTPException(status), self.request)
        await problem.response()(self.request.scope, self.request.receive, self.forward)


def _is_plain_error(start: Mapping[str, Any]) -> bool:
    media_type = Headers(raw=start["headers"]).get("content-type", "")
    is_ours = media_type == errors.MEDIA_TYPE or media_type.startswith("text/html")
    return start["status"] >= 400 and not is_ours
