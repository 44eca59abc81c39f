"""Clients that leave: how whoever makes an answer learns that nobody waits for it any more."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

Departure = Callable[[], Awaitable[object]]
"""Waits until somebody does not wait any more.

It raises what is wrong with the rest of a request that nobody has read yet: it comes too slowly,
say, or is too long.
"""


@contextmanager
def watching(client_left: Departure) -> Iterator[asyncio.Future[object]]:
    """A future that ends when `client_left` does; it is given up at the end of the block."""
    departure = asyncio.ensure_future(client_left())
    departure.add_done_callback(_see)
    try:
        yield departure
    finally:
        departure.cancel()


def _see(departure: asyncio.Future[object]) -> None:
    """Whoever has an answer need not hear what the client did meanwhile."""
    if not departure.cancelled():
        departure.exception()
