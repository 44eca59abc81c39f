"""The actor that the replicas share: requests of traces, links, quotas, metrics.

A trace is a function of its request, so the actor keeps the request and not the trace: a replica
that is asked for a trace it has not computes it again. The actor is small and restarted if it dies;
what it forgot is then as in a server that was restarted. Links are in a file of the machine that it
runs on, or in `HEADLIGHT_LINKS_DIR`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from cachetools import LRUCache

from headlight.middleware.limits import RateLimiter
from headlight.problems import Problem
from headlight.serving.links import Links
from headlight.serving.replicas import Quota, Snapshot
from headlight.settings import Settings

NAME, NAMESPACE = "headlight-hub", "headlight"
KEPT_BYTES = 64 * 2**20
STALE_SECONDS = 5.0
ANSWER_SECONDS = 2.0
N_REPLICAS = 1_000
"""Replicas whose counters are remembered after their end."""

logger = logging.getLogger(__name__)


class Hub:
    """The state of the actor; every method is short, or waits in a thread.

    Args:
        settings: of the servers; those of the environment by default.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._links = Links(settings or Settings())
        self._requests: LRUCache[str, tuple[str, bytes]] = LRUCache(
            KEPT_BYTES, getsizeof=lambda entry: len(entry[1]) + 256
        )
        self._limiters: dict[int, RateLimiter] = {}
        self._metrics: LRUCache[str, tuple[float, Snapshot]] = LRUCache(N_REPLICAS)

    async def keep(self, trace_id: str, request: bytes, replica: str) -> None:
        """Remember a request, and the replica that has its trace."""
        if len(request) < KEPT_BYTES // 4:
            self._requests[trace_id] = (replica, request)

    async def request_of(self, trace_id: str) -> bytes | None:
        """Return the request of a trace."""
        return self._requests.get(trace_id, (None, None))[1]

    async def holder(self, trace_id: str) -> str | None:
        """Return the replica that computed a trace last."""
        return self._requests.get(trace_id, (None, None))[0]

    async def take(self, client: str, per_minute: int) -> Quota:
        """Take one request from a client's quota."""
        if per_minute not in self._limiters:
            self._limiters[per_minute] = RateLimiter(per_minute)
        return self._limiters[per_minute].take(client)

    async def push(self, replica: str, snapshot: Snapshot) -> None:
        """Take the metrics of a replica."""
        self._metrics[replica] = (time.monotonic(), snapshot)

    async def others(self, replica: str) -> list[tuple[bool, Snapshot]]:
        """Return the metrics of all other replicas, and whether each pushed them just now."""
        now = time.monotonic()
        return [
            (now - at < STALE_SECONDS, snapshot)
            for name, (at, snapshot) in self._metrics.items()
            if name != replica
        ]

    async def keep_link(self, state: str) -> Any:
        """Keep the state of a page; return the id and the expiry, or the members of a problem."""
        return await _answer(self._links.keep, state)

    async def state_of_link(self, link_id: str) -> Any:
        """Return the state of a link, or the members of a problem."""
        return await _answer(self._links.state, link_id)


async def _answer(method: Callable[[str], Any], value: str) -> dict[str, Any]:
    """Call a method of the links in a thread; a problem is returned as data, which Ray can send."""
    try:
        return {"value": await asyncio.to_thread(method, value)}
    except Problem as problem:
        return {"problem": (problem.status_code, problem.kind, problem.detail)}


def value_of(answer: dict[str, Any] | None) -> Any:
    """Return the value of an answer on links; None: the hub did not answer.

    Raises:
        Problem: the answer is one.
    """
    if answer is not None and "problem" in answer:
        raise Problem(*answer["problem"])
    return None if answer is None else answer["value"]


def hub() -> Any:
    """Return a handle of the actor, which is made if there is none."""
    import ray

    # Every call sends a few hundred bytes; no core is reserved for it.
    options = {"name": NAME, "namespace": NAMESPACE, "get_if_exists": True, "lifetime": "detached"}
    return ray.remote(Hub).options(**options, num_cpus=0, max_restarts=-1).remote()


class HubClient:
    """The memory shared with other replicas, by way of the actor (`serving.replicas.Shared`).

    Args:
        replica: the name of this replica.
    """

    def __init__(self, replica: str) -> None:
        self.replica = replica
        self._hub = hub()

    async def keep(self, trace_id: str, request: bytes) -> None:
        """As `Shared.keep`."""
        await self._ask("keep", trace_id, request, self.replica)

    async def request_of(self, trace_id: str) -> bytes | None:
        """As `Shared.request_of`."""
        request: bytes | None = await self._ask("request_of", trace_id)
        return request

    async def take(self, client: str, per_minute: int) -> Quota | None:
        """As `Shared.take`."""
        quota: Quota | None = await self._ask("take", client, per_minute)
        return quota

    async def push(self, snapshot: Snapshot) -> None:
        """As `Shared.push`."""
        await self._ask("push", self.replica, snapshot)

    async def others(self) -> Sequence[tuple[bool, Snapshot]]:
        """As `Shared.others`."""
        return await self._ask("others", self.replica) or []

    async def keep_link(self, state: str) -> tuple[str, datetime] | None:
        """As `Shared.keep_link`."""
        kept: tuple[str, datetime] | None = value_of(await self._ask("keep_link", state))
        return kept

    async def state_of_link(self, link_id: str) -> str | None:
        """As `Shared.state_of_link`."""
        state: str | None = value_of(await self._ask("state_of_link", link_id))
        return state

    async def _ask(self, method: str, *values: Any) -> Any:
        """Return what the actor answers; None if it does not in time."""
        from ray.exceptions import RayError

        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await getattr(self._hub, method).remote(*values)
        except (RayError, TimeoutError) as error:
            logger.warning("the hub did not answer %s: %s", method, type(error).__name__)
            return None
