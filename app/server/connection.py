"""One connection, and how long it waits for its client: a server's places are for those who ask.

The web server waits for ever for the head of a request and for an answer to be read. Here both have
a time: a head must arrive in it, and of an answer something must be taken in it. Who fails is cut
off, and everything that was held for it is free.
"""

import asyncio
import logging
from typing import Any

import h11

from headlight.errors import Problem
from headlight.request_log import Ledger
from headlight.server.protocol import ProblemProtocol
from headlight.settings import Settings

logger = logging.getLogger(__name__)


class Connection(ProblemProtocol):
    """HTTP/1.1 for clients that send and read in time.

    Args:
        settings: what the server was told.
        ledger: where what is refused here is entered.
        given: what the web server gives every connection.
    """

    def __init__(self, settings: Settings, ledger: Ledger, **given: Any) -> None:
        super().__init__(settings, ledger, **given)
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._has_sent = False
        self._n_unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or refuse it where there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.settings.max_connections:
            self._refuse(self._too_many())
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_awaiting_head()
        self._stop_watching_reader()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; from the first byte of a head, the rest of it must follow in time."""
        super().data_received(data)
        if self._has_part_of_a_head:
            self._has_sent = True
            self._await_head()
        else:
            self._has_sent = False
            self._stop_awaiting_head()
            self._keep_alive_for_a_time()

    def on_response_complete(self) -> None:
        """Keep the connection, or see to it that what is closed is read, too."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_reader()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which nothing was asked for long."""
        super().timeout_keep_alive_handler()
        self._watch_reader()

    def pause_writing(self) -> None:
        """Begin to watch a client that does not read as fast as it is answered."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """Go on, as the client has read."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_watching_reader()

    @property
    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _has_part_of_a_head(self) -> bool:
        """Whether a request has begun; the rest of a body that was refused before is none."""
        is_idle = self._is_between_requests and self.conn.their_state is h11.IDLE
        return is_idle and bool(self.conn.trailing_data[0])

    def _keep_alive_for_a_time(self) -> None:
        """Let the time of an idle connection run again, which the rest of a body has stopped."""
        is_idle = self._is_between_requests and self.conn.their_state is h11.IDLE
        if is_idle and self.timeout_keep_alive_task is None and not self.transport.is_closing():
            seconds = self.settings.keep_alive_seconds
            again = self.loop.call_later(seconds, self.timeout_keep_alive_handler)
            self.timeout_keep_alive_task = again

    def _await_head(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            seconds = self.settings.header_seconds
            self._head_timer = self.loop.call_later(seconds, self._head_is_late)

    def _stop_awaiting_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self._is_between_requests or self.transport.is_closing():
            return
        if self._has_sent:
            self._refuse(self._late_head())
        self.transport.close()  # who sent nothing, a browser that might have asked, is told nothing
        self._watch_reader()

    def _watch_reader(self) -> None:
        n_unread = self.transport.get_write_buffer_size()
        if self._reader_timer is None and n_unread:
            self._n_unread = n_unread
            seconds = self.settings.stream_patience_seconds
            self._reader_timer = self.loop.call_later(seconds, self._judge_reader)

    def _stop_watching_reader(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _judge_reader(self) -> None:
        """Cut a client off that has read less than it should have, else watch it on."""
        self._reader_timer = None
        before, left = self._n_unread, self.transport.get_write_buffer_size()
        expected = self.settings.least_read_rate * self.settings.stream_patience_seconds
        if left and before - left < min(expected, before):
            logger.warning("a connection was cut: its client left %d bytes unread", left)
            self.transport.abort()
        else:
            self._watch_reader()

    def _too_many(self) -> Problem:
        limit, seconds = self.settings.max_connections, self.settings.retry_after_seconds
        detail = f"{limit:,} connections are open already; try again in {seconds} s"
        headers = {"Retry-After": str(seconds)}
        return Problem(503, "too-many-connections", detail, limit=limit, headers=headers)

    def _late_head(self) -> Problem:
        limit = self.settings.header_seconds
        detail = (
            f"the head of the request did not arrive within {limit:g} s; send all of it at once"
        )
        return Problem(408, "headers-too-slow", detail, limit=limit)
