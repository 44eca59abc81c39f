"""The outermost door: bytes that are no HTTP request are answered as a problem, too.

The web server answers such bytes itself, before any application sees them, and as plain text. Here
it says what every other error says: a problem, under the headers of every other answer.
"""

import asyncio
from http import HTTPStatus
from typing import Any, cast

import h11
import orjson
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from headlight import request_context as exchanges
from headlight.asked_route import route_asked
from headlight.errors import MEDIA_TYPE, Problem
from headlight.metrics import NO_ROUTE
from headlight.middleware.security_headers import SECURITY_HEADERS
from headlight.request_context import Exchange
from headlight.request_log import Ledger
from headlight.server.reader import Reader
from headlight.settings import Settings

_CUT_OFF = "the connection ended in the middle of the request; send all of it"
# Long enough to read the refusal, which a connection that is closed at once would take along.
_LINGER_SECONDS = 2.0


class ProblemProtocol(H11Protocol):
    """HTTP/1.1 that refuses in problems what cannot be read, and asks nothing for who has left.

    Args:
        settings: what the server was told.
        ledger: where the refusals are entered, and those who left.
        given: what the web server gives every connection.
    """

    def __init__(self, settings: Settings, ledger: Ledger, **given: Any) -> None:
        super().__init__(**given)
        self.settings = settings
        self.ledger = ledger
        self.conn = Reader(self._refuse, settings.max_header_bytes, settings.max_body_bytes)
        self.application = self.app
        self.app = self._answer_who_waits
        self.has_refused = False

    async def _answer_who_waits(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask the application, but not for a client whose end came right behind its request.

        One turn of the event loop is enough to see it.
        """
        await asyncio.sleep(0)
        if not self.transport.is_closing():
            await self.application(scope, receive, send)
            return
        self.cycle.disconnected = True  # so that nobody expects an answer
        if not self.has_refused:
            self.ledger.enter(exchanges.begin(scope), self._route_of(scope))

    def eof_received(self) -> None:
        """Answer a client that ended its side in the middle of a request."""
        began = bool(self.conn.trailing_data[0])
        if self.conn.their_state is h11.SEND_BODY or (self.conn.their_state is h11.IDLE and began):
            self._refuse(Problem(400, "cut-off", _CUT_OFF))

    def on_response_complete(self) -> None:
        """Keep the connection, but not for a body that was refused and goes on and on."""
        answered = self.cycle
        super().on_response_complete()  # the next request may have come already
        if self.cycle is answered and self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(_LINGER_SECONDS, self._hang_up_on, answered)

    def _hang_up_on(self, cycle: RequestResponseCycle) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.transport.close()

    def _should_upgrade(self) -> bool:
        """Never: a wish for another protocol may be ignored, and is."""
        return False

    def _refuse(self, problem: Problem) -> None:
        """Answer and hang up; where an answer has begun, hang up alone."""
        self.has_refused = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer_as_exchange(problem)
        if self.cycle is not None:
            self.cycle.disconnected = True  # whoever still works on an answer is to stop
            self.cycle.message_event.set()
        self.transport.close()

    def _answer_as_exchange(self, problem: Problem) -> None:
        """Answer, and see to it that the answer is counted and logged once."""
        is_open = self.cycle is not None and not self.cycle.response_complete
        scope = cast("Scope", self.cycle.scope) if is_open else None
        is_asked = scope is not None and exchanges.SCOPE_KEY in scope
        exchange = self._exchange_of(scope)
        before = exchanges.current.set(exchange)
        try:
            exchange.status = problem.status_code
            exchange.sent_bytes += self._answer(problem, exchange.id)
            if not is_asked:  # else the application enters it
                self.ledger.enter(exchange, self._route_of(scope))
        finally:
            exchanges.current.reset(before)

    def _exchange_of(self, scope: Scope | None) -> Exchange:
        if scope is None:
            return exchanges.begin_unread(self.client[0] if self.client else None)
        return scope.get(exchanges.SCOPE_KEY) or exchanges.begin(scope)

    def _route_of(self, scope: Scope | None) -> str:
        return NO_ROUTE if scope is None else route_asked(cast("FastAPI", self.config.app), scope)

    def _answer(self, problem: Problem, request_id: str) -> int:
        body = orjson.dumps(problem.document())
        fields = {
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "Connection": "close",
            "X-Request-ID": request_id,
            **SECURITY_HEADERS,
            **(problem.headers or {}),
        }
        headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
        status = problem.status_code
        for event in (
            h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        return len(body)
