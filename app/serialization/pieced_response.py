"""A response whose content leaves in pieces.

Handed over whole, tens of megabytes are copied more than once on the event loop before the first of
them leaves, which nobody else gets a turn in; and all of them lie in the server's buffer until a
slow client has read them. A piece follows when there is room for it, and a large answer is sent
when nearly all of it has left.
"""

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PIECE_BYTES = 2**18

UNREAD_BYTES = 2**16
"""What a connection takes before it asks for patience; asyncio's own bound."""


class PiecedResponse(Response):
    """A response as any other; its length is known and told."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, then the content piece by piece.

        An end of its own, which waits as each piece does, follows what may lie unread.
        """
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
