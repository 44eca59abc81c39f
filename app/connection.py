"""Connections whose clients are told that the server stops, before they are closed.

uvicorn closes an idle connection as soon as the server stops. A request that has arrived there and
was not read is lost: its client sees a reset, and cannot know whether the request had an effect.
"""

from uvicorn.protocols.http.h11_impl import H11Protocol

CLOSE = (b"connection", b"close")

DRAIN_SECONDS = 0.2
"""How long an idle connection stays open after the server began to stop."""


class Connection(H11Protocol):
    """uvicorn's connection, but what has arrived is read and answered before it is closed.

    As soon as the server listens no more, each response says that its connection is closed, so that
    its client sends nothing more (RFC 9112, section 9.6). A client that is told so earlier connects
    again, to a server that is about to end.
    """

    def shutdown(self) -> None:
        """Close the connection: after the response that is open, or in a moment."""
        if CLOSE not in self.server_state.default_headers:
            self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]
        if self._is_idle:
            self.loop.call_later(DRAIN_SECONDS, self._end)
            return
        if not self.cycle.response_started:
            self.cycle.default_headers = self.server_state.default_headers
        super().shutdown()

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _end(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()
