"""Answers on their way out, and how much memory they may take together.

An encoded answer lies in memory until its client has read it, and a client may take its time. So
room is reserved before an answer is encoded, for what it may take at most; once it is encoded, for
what it takes; and all of it is free again when the answer is sent, or nobody waits for it any more.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from headlight.errors import refusal


class Outgoing:
    """The bytes of all answers that are encoded or being sent.

    Args:
        limit: how many there may be; an answer that is larger passes where it is the only one.
        retry_after_seconds: what a refused client is told to wait.
    """

    def __init__(self, *, limit: int, retry_after_seconds: int) -> None:
        self.limit = limit
        self.retry_after_seconds = retry_after_seconds
        self.n_bytes = 0

    @contextmanager
    def room(self) -> Iterator["Room"]:
        """Room for one answer, empty at first, for as long as the block runs."""
        room = Room(self)
        try:
            yield room
        finally:
            room.settle(0)


class Room:
    """What one answer takes of the bytes that there are.

    Args:
        outgoing: the bytes of all of them.
    """

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.n_bytes = 0

    def reserve(self, n_bytes: int) -> None:
        """Take room for so many bytes.

        Raises:
            Problem: 503 with Retry-After, where the others leave too little.
        """
        limit, others = self.outgoing.limit, self.outgoing.n_bytes - self.n_bytes
        if others and others + n_bytes > limit:
            why = (
                f"answers that their clients have not read yet take {others:,} bytes, and this one "
                f"may take {n_bytes:,} more, of {limit:,} for all; ask for less"
            )
            wait = self.outgoing.retry_after_seconds
            raise refusal(
                "too-many-outgoing-bytes",
                why,
                retry_after_seconds=wait,
                limit=limit,
                actual=others + n_bytes,
            )
        self.settle(n_bytes)

    def settle(self, n_bytes: int) -> None:
        """Take as much as the answer turned out to need."""
        self.outgoing.n_bytes += n_bytes - self.n_bytes
        self.n_bytes = n_bytes
