"""How much memory answers may take together on their way out.

An encoded answer lies in memory until its client has read it, and a client may take its time. A
large answer reserves what it may take at most before it is encoded; every answer reserves what it
takes until it is sent.
"""

from headlight.errors import refusal

RETRY_AFTER_SECONDS = 1


class Outgoing:
    """The bytes of all answers that are encoded or being sent.

    Args:
        limit: how many there may be; a single larger answer is allowed when nothing else is out.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.n_bytes = 0

    def reserve(self, n_bytes: int) -> "Reservation":
        """Reserve that many bytes.

        Raises:
            Problem: 503 with Retry-After, the other answers leave too little.
        """
        if self.n_bytes and self.n_bytes + n_bytes > self.limit:
            why = (
                f"answers that their clients have not read yet take {self.n_bytes:,} bytes, and "
                f"this one may take {n_bytes:,} more, of {self.limit:,} for all; ask for less"
            )
            limits = {"limit": self.limit, "actual": self.n_bytes + n_bytes}
            kind = "too-many-outgoing-bytes"
            raise refusal(kind, why, retry_after_seconds=RETRY_AFTER_SECONDS, **limits)
        return Reservation(self, n_bytes)


class Reservation:
    """The bytes that one answer takes of all outgoing bytes."""

    def __init__(self, outgoing: Outgoing, n_bytes: int) -> None:
        self.outgoing = outgoing
        self.n_bytes = 0
        self.resize(n_bytes)

    def resize(self, n_bytes: int) -> None:
        """Take as much as the answer turned out to need."""
        self.outgoing.n_bytes += n_bytes - self.n_bytes
        self.n_bytes = n_bytes

    def release(self) -> None:
        """Take nothing any more: the answer is sent, or nobody waits for it."""
        self.resize(0)
