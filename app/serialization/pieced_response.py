"""A response whose content leaves in pieces.

Handed over whole, tens of megabytes are copied more than once on the event loop before the first of
them leaves, which nobody else gets a turn in; and all of them lie in the server's buffer until a
slow client has read them. A piece follows when there is room for it, and a large answer is sent
when nearly all of it has left.
"""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headlight.serialization.sending import Reservation

PIECE_BYTES = 2**18

UNREAD_BYTES = 2**16
"""What a connection takes before it asks for patience; asyncio's own bound."""


class ChunkedResponse(Response):
    """A response of known length whose reservation is released when it is sent.

    Args:
        content: the body.
        media_type: its type.
        headers: further headers.
        reservation: of the body's bytes.
    """

    def __init__(
        self, content: bytes, media_type: str, headers: Mapping[str, str], reservation: Reservation
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self.reservation = reservation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, then the content piece by piece."""
        try:
            await self._send(send)
        finally:
            self.reservation.release()

    async def _send(self, send: Send) -> None:
        """An end of its own, which waits as each piece does, follows what may lie unread."""
        content = memoryview(self.body)
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        has_end = len(content) > UNREAD_BYTES
        for first in range(0, len(content) or 1, PIECE_BYTES):
            last = first + PIECE_BYTES
            piece = bytes(content[first:last])
            more = has_end or last < len(content)
            await send({"type": "http.response.body", "body": piece, "more_body": more})
        if has_end:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
