"""Problems for all errors, whoever made them."""

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


class ProblemResponses:
    """Turns errors that others answer as text, and exceptions nobody expected, into errors."""

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
        except errors.Problem as problem:  # of a layer: routes have theirs answered
            await problem.response()(scope, receive, send)
        except asyncio.CancelledError:  # by the web server, when its time to end is up
            if answer.is_started:
                raise
            wait = answer.request.app.state.services.settings.retry_after_seconds
            await errors.server_stopping(wait).response()(scope, receive, send)
        except Exception:
            logger.exception("an exception nobody expected")
            if answer.is_started:
                raise
            await errors.unexpected().response()(scope, receive, send)


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

    def _problem(self, status: int) -> errors.Problem:
        if status == 400:  # the only one that answers it as text is TrustedHostMiddleware
            return errors.host_refused(self.request)
        return errors.problem_from_status(HTTPException(status), self.request)


def _is_plain_error(start: Mapping[str, Any]) -> bool:
    is_problem = Headers(raw=start["headers"]).get("content-type") == errors.MEDIA_TYPE
    return start["status"] >= 400 and not is_problem
