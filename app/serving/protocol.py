"""The outermost door: bytes that are no HTTP request are answered as a problem, too.

The web server answers such bytes itself, before any application sees them, and as plain text. Here
it says what every other error says: a problem, under the headers of every other answer.
"""

import sys

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from app.middleware.security_headers import SECURITY_HEADERS
from app.problems import MEDIA_TYPE, Problem, head_too_long

_CUT_OFF = "the connection ended in the middle of the request; send all of it"
_NOT_HTTP = "what was received is no request of HTTP/1.1: {}"
# Long enough to read the refusal, which a connection that is closed at once would take along.
_LINGER_SECONDS = 2.0


class ProblemProtocol(H11Protocol):
    """HTTP/1.1 that refuses in problems what cannot be read."""

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

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser, whose error is being handled, could not read."""
        error = sys.exception()
        status = getattr(error, "error_status_hint", 400)
        if status == 431:
            self._refuse(head_too_long(self.config.h11_max_incomplete_event_size or 0))
            return
        reason = str(error or msg).partition(":")[0]  # what follows it repeats the bytes
        kind = "not-implemented" if status == 501 else "malformed-request"
        self._refuse(Problem(status, kind, _NOT_HTTP.format(reason)))

    def _refuse(self, problem: Problem) -> None:
        """Answer and hang up; where an answer has begun, hang up alone."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer(problem)
        if self.cycle is not None:
            self.cycle.disconnected = True  # whoever still works on an answer is to stop
            self.cycle.message_event.set()
        self.transport.close()

    def _answer(self, problem: Problem) -> None:
        body = orjson.dumps(problem.document())
        fields = {
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "Connection": "close",
            **SECURITY_HEADERS,
            **(problem.headers or {}),
        }
        headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
        for event in (
            h11.Response(status_code=problem.status_code, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
