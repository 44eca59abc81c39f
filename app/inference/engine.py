"""The engine: a bounded queue in front of one inference thread.

PyTorch never runs on the event loop, so `/healthz` answers while a trace is computed. Passes
that run side by side would only share the same cores; those that wait together may run as one.
A request is refused at once when the queue is full, refused later when it waited or took too
long, and dropped when its client left. What runs stops between two layers when nobody waits for
any of it. A thread that dies is replaced.

    engine.py → jobs.py → worker.py, which supervisor.py keeps alive
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from time import monotonic
from typing import Any, TypeVar

from headlight.errors import Problem, refusal, server_stopping
from headlight.inference.disconnects import Departure, watching
from headlight.inference.jobs import Job, Queue, QueueFull
from headlight.inference.supervisor import Supervisor
from headlight.inference.worker import Worker
from headlight.metrics import Metrics

Result = TypeVar("Result")
Order = TypeVar("Order")

CLOSING_SECONDS = 2
"""How long a pass that nobody waits for may take to stop when the engine is closed."""


class ClientLeft(Problem):
    """The client closed its connection; the status is for our log, nobody reads the answer."""

    def __init__(self) -> None:
        super().__init__(499, "client-left", "the client left before it was answered")


async def _never() -> None:
    await asyncio.Event().wait()


def _nothing(*_: object) -> None:
    pass


class Engine:
    """Runs work on a thread of its own, first come first served.

    Args:
        queue_length: how many pieces may wait while others run.
        queue_seconds: how long a piece may wait before it is refused.
        retry_after_seconds: what a refused client is told to wait.
        work_seconds: how long a piece may take before it is refused.
        max_batch: how many pieces of one kind run together at most.
        prepare: called first on every new inference thread.
        on_death: called with a sentence when an inference thread died.
        on_end: called with a sentence when none comes to life any more.
        thread_name: what its threads are called.
        metrics: told what waits and how long it takes.
    """

    def __init__(
        self,
        *,
        queue_length: int,
        queue_seconds: float,
        retry_after_seconds: int,
        work_seconds: float = 30.0,
        max_batch: int = 16,
        prepare: Callable[[], object] = _nothing,
        on_death: Callable[[str], object] = _nothing,
        on_end: Callable[[str], object] = _nothing,
        thread_name: str = "inference",
        metrics: Metrics | None = None,
    ) -> None:
        self.queue_seconds = queue_seconds
        self.retry_after_seconds = retry_after_seconds
        self.work_seconds = work_seconds
        self.max_batch = max_batch
        self.metrics = metrics or Metrics()
        self.is_stopping = False
        self._queue = Queue(queue_length)
        self._prepare = prepare
        self._on_death = on_death
        self._on_end = on_end
        self._thread_name = thread_name
        self._supervisor: Supervisor | None = None

    @property
    def queue_length(self) -> int:
        """How many pieces may wait while others run."""
        return self._queue.length

    @queue_length.setter
    def queue_length(self, length: int) -> None:
        self._queue.length = length

    @property
    def n_jobs(self) -> int:
        """How many pieces run or wait."""
        return self._queue.n_jobs

    @property
    def n_workers(self) -> int:
        """How many inference threads are alive: one, and those that hang."""
        return self._supervisor.n_workers if self._supervisor else 0

    def start(self) -> None:
        """Make the inference thread, without waiting for it; who asks first does it too."""
        if self._supervisor is None:
            self._supervisor = Supervisor(
                self._new_worker,
                self._queue,
                work_seconds=self.work_seconds,
                refusal=self._died,
                on_death=self._note_death,
                on_end=self._on_end,
            )

    async def run(
        self,
        work: Callable[[], Result],
        *,
        client_left: Departure = _never,
        is_begun: bool = False,
    ) -> Result:
        """Run `work` on the inference thread and return what it returns.

        Args:
            work: called without arguments; what it raises is raised here.
            client_left: waits until nobody waits for the answer any more.
            is_begun: whether it goes on with what was let in before. A full queue does not refuse
                it, as half an answer is of no use.

        Raises:
            Problem: 503 with Retry-After, where the queue is full, the wait was too long, the
                server stops, or the inference thread died of this; 504, where the work took too
                long.
            ClientLeft: the client left before the work was done.
        """
        result: Result = await self._answer(Job(None, work, _call, is_begun=is_begun), client_left)
        return result

    async def run_together(
        self,
        kind: Hashable,
        order: Order,
        solve: Callable[[list[Order]], Sequence[Result | Exception]],
        *,
        client_left: Departure = _never,
        since: float | None = None,
    ) -> Result:
        """Run an order together with those of its kind that wait when its turn comes.

        Nobody waits for others to come: orders meet because one batch runs while they arrive.

        Args:
            kind: what orders that can be solved together have in common.
            order: what is asked for.
            solve: gives a result or an exception for each of at most `max_batch` orders. Where it
                raises instead, it is asked again for each order alone.
            client_left: waits until nobody waits for the answer any more.
            since: when the wait began, by the monotonic clock; None: now.

        Raises:
            Problem, ClientLeft: as `run`.
        """
        job = Job(kind, order, solve, queued_at=since)
        result: Result = await self._answer(job, client_left)
        return result

    def stop(self) -> None:
        """Refuse what runs, what waits and what comes: the server's time is up."""
        self.is_stopping = True
        for job in self._queue.jobs():
            job.settle(self._stopping())

    def close(self) -> None:
        """Finish the piece that runs, refuse those that wait, end the thread."""
        self.is_stopping = True
        if self._supervisor is not None:
            self._supervisor.close(CLOSING_SECONDS)
        for job in self._queue.jobs():
            job.settle(self._stopping())

    def _new_worker(self) -> Worker:
        return Worker(
            self._queue, self._prepare, self.max_batch, self.metrics, name=self._thread_name
        )

    async def _answer(self, job: Job, client_left: Departure) -> Any:
        self._enqueue(job)
        try:
            with watching(client_left) as departure:
                while not job.answer.done():
                    await asyncio.wait(
                        {job.answer, departure},
                        timeout=self._patience(job),
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if not job.answer.done():
                        self._require_hope(job, departure)
                return job.answer.result()
        finally:
            self._queue.withdraw(job)
            job.forget()

    def _enqueue(self, job: Job) -> None:
        if self.is_stopping:
            raise self._stopping()
        self.start()
        if self._supervisor and self._supervisor.has_given_up:
            raise self._died()
        try:
            self._queue.put(job)
        except QueueFull as full:
            limit = self._queue.length
            why = f"{limit} requests are waiting already"
            raise self._refusal("queue-full", why, limit=limit, actual=full.actual) from None

    def _patience(self, job: Job) -> float:
        """The seconds until the next moment at which this job may have run out of its time."""
        now = monotonic()
        if job.started_at is not None:
            return max(0.0, job.started_at + self.work_seconds - now)
        # It may start at any time from now on, so it may run out of either.
        return max(0.0, min(job.queued_at + self.queue_seconds - now, self.work_seconds))

    def _require_hope(self, job: Job, departure: asyncio.Future[object]) -> None:
        """Give up a job whose client left or whose time is over."""
        if departure.done():
            departure.result()  # raises what is wrong with the rest of the request
            raise ClientLeft
        now = monotonic()
        if job.started_at is None and now - job.queued_at >= self.queue_seconds:
            # The worker may take it at this very moment; then its time to work begins.
            if self._queue.withdraw(job):
                waited = f"this request waited {self.queue_seconds:g} s and was not reached"
                raise self._refusal("queue-timeout", waited)
        elif job.started_at is not None and now - job.started_at >= self.work_seconds:
            took = f"this took longer than the {self.work_seconds:g} s that are allowed"
            way_out = "ask for fewer tokens, sites, layers or analyses"
            raise Problem(504, "too-slow", f"{took} and was stopped; {way_out}")

    def _note_death(self, why: str) -> None:
        self.metrics.worker_deaths.inc()
        self._on_death(why)

    def _died(self) -> Problem:
        why = f"the {self._thread_name} thread died while it worked on this"
        return self._refusal("worker-died", why)

    def _stopping(self) -> Problem:
        return server_stopping(self.retry_after_seconds)

    def _refusal(self, kind: str, why: str, **members: int) -> Problem:
        return refusal(kind, why, retry_after_seconds=self.retry_after_seconds, **members)


def _call(works: list[Callable[[], Any]]) -> list[Any]:
    return [work() for work in works]
