"""Answers that come event by event: how many there may be, and how each of them ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from headlight.errors import Problem

logger = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"

# An event is of use at once or not at all: no cache may keep it, no proxy may collect several.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Streams:
    """The streams that are open now.

    Args:
        limit: how many there may be.
        retry_after_seconds: what a refused client is told to wait.
    """

    def __init__(self, *, limit: int, retry_after_seconds: int) -> None:
        self.limit = limit
        self.retry_after_seconds = retry_after_seconds
        self.n_open = 0
        self.is_stopping = False

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place for one stream, for as long as the block runs.

        Raises:
            Problem: 503 with Retry-After, where all places are taken.
        """
        if self.n_open >= self.limit:
            wait = self.retry_after_seconds
            raise Problem(
                503,
                "too-many-streams",
                f"{self.n_open} texts are being written already; try again in {wait} s",
                headers={"Retry-After": str(wait)},
                limit=self.limit,
                actual=self.n_open,
            )
        self.n_open += 1
        try:
            yield
        finally:
            self.n_open -= 1

    def stop(self) -> None:
        """Let every stream end after the event in progress: the server was told to stop."""
        self.is_stopping = True


class EventStream(StreamingResponse):
    """Events on their way to a client, for as long as it reads them.

    Args:
        events: each encoded, as they come to be.
        patience: seconds that a client may leave an event unread.
    """

    media_type = EVENT_STREAM

    def __init__(self, events: AsyncIterator[bytes], patience: float) -> None:
        super().__init__(events, headers=HEADERS)
        self.patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; a client that does not read them is cut off."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self.patience):
                await send(message)

        try:
            await super().__call__(scope, receive, send_in_time)
        except TimeoutError:
            logger.warning("a stream was cut: its client read nothing for %g s", self.patience)
