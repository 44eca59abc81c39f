"""The reader of requests: what it cannot read, or must not, it hands over as a problem.

The web server's own reader raises, and logs a warning for each scanner that knocks. This one says
once what is wrong and then that there is nothing more to read.
"""

import re
from collections.abc import Callable
from typing import Any

import h11

from headlight.errors import Problem, body_too_large, head_too_long

_NOT_HTTP = "what was received is no request of HTTP/1.1: {}"
_CODING = "a body is read as it is or in chunks, and in no other transfer coding; send it so"
_VERSION = "the server speaks HTTP/1.1 and no other major version of HTTP; ask it in that"
# The parser ends some of its sentences with the bytes that it could not read.
_REPEATED = re.compile(r":? (b['\"]|bytearray\().*", re.DOTALL)


class Reader(h11.Connection):
    """A server's side of HTTP/1.1.

    Args:
        refuse: called once, with what is wrong.
        max_header_bytes: what a head may take.
        max_body_bytes: what a body may take, so that no chunk may say it takes more.
    """

    def __init__(
        self, refuse: Callable[[Problem], object], max_header_bytes: int, max_body_bytes: int
    ) -> None:
        super().__init__(h11.SERVER, max_header_bytes)
        self._refuse = refuse
        self._max_header_bytes = max_header_bytes
        self._max_body_bytes = max_body_bytes
        self._has_refused = False

    def next_event(self) -> Any:
        """What was received, or that more is needed; nothing after a refusal."""
        if self._has_refused:
            return h11.NEED_DATA
        try:
            event = super().next_event()
            problem = self._problem(event)
        except h11.RemoteProtocolError as error:
            problem = self._unreadable(error)
        if problem is None:
            return event
        self._has_refused = True
        self._refuse(problem)
        return h11.NEED_DATA

    def _problem(self, event: Any) -> Problem | None:
        if isinstance(event, h11.Request) and not event.http_version.startswith(b"1."):
            return Problem(505, "version-not-supported", _VERSION)
        is_in_body = event is h11.NEED_DATA or isinstance(event, h11.Data)
        if is_in_body and self._chunk_bytes_to_come > self._max_body_bytes:
            return body_too_large(self._max_body_bytes)
        return None

    @property
    def _chunk_bytes_to_come(self) -> int:
        """What the chunk that is being read says is still to come of it."""
        return getattr(self._reader, "_bytes_in_chunk", 0)

    def _unreadable(self, error: h11.RemoteProtocolError) -> Problem:
        match error.error_status_hint:
            case 431:
                return head_too_long(self._max_header_bytes)
            case 501:
                return Problem(501, "not-implemented", _CODING)
            case status:
                reason = _REPEATED.sub("", str(error))
                return Problem(status, "malformed-request", _NOT_HTTP.format(_begun_small(reason)))


def _begun_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
