"""The memory of the servers of one service, so that it does not matter which of them answers.

A server by itself shares nothing. The replicas of `headlight.cluster` do, by way of an actor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

Snapshot = list[tuple[str, str, str, list[tuple[str, dict[str, str], float]]]]
"""Metrics: name, meaning, type and samples, each a name, labels and a value."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A client's remaining requests; seconds until the next one, and until the quota is full."""

    remaining: int
    wait: float
    full_after: float


class Shared(Protocol):
    """The memory of all servers. A call that fails is as if nothing were shared."""

    async def keep(self, trace_id: str, request: bytes) -> None:
        """Remember the request of a trace that this server keeps, as JSON."""

    async def request_of(self, trace_id: str) -> bytes | None:
        """Return the request of a trace that any server computed, if it is remembered."""

    async def take(self, client: str, per_minute: int) -> Quota | None:
        """Take one request from a client's quota over all servers; None: it cannot be asked."""

    async def push(self, snapshot: Snapshot) -> None:
        """Tell the others the metrics of this server."""

    async def others(self) -> Sequence[tuple[bool, Snapshot]]:
        """Return the metrics of the other servers, and whether each is alive."""

    async def keep_link(self, state: str) -> tuple[str, datetime] | None:
        """Keep the state of a page for all servers, as `Links.keep`; None: it cannot be asked.

        Raises:
            Problem: as `Links.keep`.
        """

    async def state_of_link(self, link_id: str) -> str | None:
        """Return the state of a link that any server kept; None: it cannot be asked.

        Raises:
            Problem: as `Links.state`.
        """
