"""Problems for every error: of Starlette's layers, of ours, and unexpected exceptions."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight import errors

logger = logging.getLogger(__name__)


class Errors:
    """Turns plain-text errors and exceptions into problems (RFC 9457).

    Starlette's ServerErrorMiddleware and ExceptionMiddleware were considered: they stand inside and
    outside all other layers, and see no error response that a layer sends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; replace its response if that is an error but not a problem."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        response = _WatchedResponse(scope, receive, send)
        try:
            await self.app(scope, receive, response.send)
        except errors.Problem as problem:  # raised by a layer: routes have theirs answered
            await problem.response()(scope, receive, send)
        except asyncio.CancelledError:  # by uvicorn, when its time to shut down is over
            if response.is_started:
                raise
            await errors.server_stopping().response()(scope, receive, send)
        except Exception:
            logger.exception("an unexpected exception")
            if response.is_started:
                raise
            await errors.unexpected().response()(scope, receive, send)


class _WatchedResponse:
    """One response on its way out."""

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
        if status == 400:  # only TrustedHostMiddleware answers it as text
            problem = errors.host_refused(self.request)
        else:
            problem = errors.problem_from_status(HTTPException(status), self.request)
        await problem.response()(self.request.scope, self.request.receive, self.forward)


def _is_plain_error(start: Mapping[str, Any]) -> bool:
    is_problem = Headers(raw=start["headers"]).get("content-type") == errors.MEDIA_TYPE
    return start["status"] >= 400 and not is_problem
