"""Traces on demand: from the cache, from a computation that runs already, or from a new one."""

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic

from headlight.inference.disconnects import Departure
from headlight.inference.engine import Engine
from headlight.inference.single_flight import Sharing
from headlight.metrics import Metrics
from headlight.schemas.traces import TraceRequest
from headlight.serialization.trace import Answer
from headlight.tracing.cache import Cache
from headlight.tracing.jobs import Order
from headlight.tracing.tracer import Tracer

LARGE_BYTES = 1_000_000
"""What is copied on the event loop at most, in a fraction of a millisecond."""


class Traces:
    """Answers to requests for traces, each computed once while it is kept.

    Args:
        tracer: knows what to compute.
        engine: where it is computed.
        metrics: told what was computed and what was not.
        on_end: called with a sentence when no thread to plan on comes to life any more.
    """

    def __init__(
        self,
        tracer: Tracer,
        engine: Engine,
        metrics: Metrics,
        *,
        on_end: Callable[[str], object] = lambda _: None,
    ) -> None:
        settings = tracer.settings
        self.tracer = tracer
        self.engine = engine
        self.metrics = metrics
        # Hostile globs take a while to match, which is no work for the event loop.
        self.planner = Engine(
            queue_length=settings.queue_length,
            queue_seconds=settings.queue_seconds,
            retry_after_seconds=settings.retry_after_seconds,
            work_seconds=settings.work_seconds,
            on_end=on_end,
            thread_name="planning",
        )
        self.cache = Cache(settings.cache_bytes, metrics)
        self.sharing: Sharing[Answer] = Sharing(on_share=metrics.shared.inc)
        metrics.watch(metrics.cache_bytes, lambda: self.cache.n_bytes)

    async def answer(self, request: TraceRequest, client_left: Departure) -> Answer:
        """The trace that is asked for. One that was computed before has no timings.

        Args:
            request: what is asked for.
            client_left: waits until nobody waits for the answer any more.

        Raises:
            Problem: what is asked for cannot be had, or not now.
            ClientLeft: the client left before it was computed.
        """
        began = monotonic()
        order = await self._order(request, client_left)
        kept = self.cache.get(order.id)
        if kept is not None:
            return kept
        compute = partial(self._compute, order, began)
        return await self.sharing.share(order.id, compute, client_left)

    def kept(self, trace_id: str) -> Answer | None:
        """The trace of that id, if it was computed before and is kept."""
        found = self.cache.get(trace_id)
        if found is None:
            self.metrics.cache_misses.inc()
        return found

    def is_kept(self, trace_id: str) -> bool:
        """Whether `kept` would find it now."""
        return trace_id in self.cache

    async def _order(self, request: TraceRequest, client_left: Departure) -> Order:
        plan = partial(self.tracer.order, request)
        if request.capture is None:
            return plan()
        return await self.planner.run(plan, client_left=client_left)

    async def _compute(self, order: Order, since: float, everyone_left: Departure) -> Answer:
        self.metrics.cache_misses.inc()  # whoever shares this has missed nothing
        answer = await self.engine.run_together(
            order.kind, order, self.tracer.solve, client_left=everyone_left, since=since
        )
        keep = partial(self.cache.put, answer.untimed())
        await asyncio.to_thread(keep) if answer.n_bytes > LARGE_BYTES else keep()
        return answer
