"""The inference engine: a bounded queue in front of one worker thread.

PyTorch never runs on the event loop, so `/healthz` answers while a trace is computed. Jobs of equal
batch keys that wait together run as one batch; nothing waits for a batch to fill. A job is rejected
at once if the queue is full, later if it waited or ran too long, and dropped if its client
disconnected; a batch without waiting clients stops between two layers.

A one-thread `ThreadPoolExecutor`, without batches and cancellation, answers 0.4 × as many requests
of 16 and of 64 clients (tests/benchmarks/test_throughput.py).

An error that leaves the device or the process in doubt is fatal: `on_fatal` is called and the
engine takes no other jobs. A new thread in the same process would inherit the damage.

Threads: the queue and `Job.started_at` are changed under the lock. `Job.future` and `Job.is_wanted`
are set on the job's event loop only; the worker reads `is_wanted`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from threading import Condition, Thread
from time import monotonic
from typing import Any, TypeVar

from headlight.model.cancellation import Cancelled, cancellable
from headlight.model.device import is_device_lost, is_out_of_memory
from headlight.problems import Problem, server_stopping, service_unavailable
from headlight.serving.concurrency import ClientLeft, unless_client_leaves
from headlight.serving.metrics import Metrics

Result = TypeVar("Result")

Solve = Callable[[list[Any]], Iterator[tuple[int, Any]]]
"""Computes a batch: yields the index of each payload once, with its result or an `Exception`."""

logger = logging.getLogger(__name__)

STOP_SECONDS = 2
"""How long `close` waits for the worker thread."""

HANG_FACTOR = 3
"""A batch that runs for this many times `work_seconds` hangs in code that never checks."""

WAKE_SECONDS = 0.01
"""How long a result waits for others of its batch, for the event loop to send them in one go.

Sending contends with the worker thread for the interpreter: 64 clients get 1.09 × as many answers
as if the loop were woken for each.
"""


class Job:
    """A piece of work in the queue, and the future of its result. Made on the event loop.

    Jobs of equal `batch_key` may run as one batch; None: only this one. A job that continues
    work admitted before is not rejected by a full queue, and has every second turn, as half an
    answer is of no use.
    """

    def __init__(
        self,
        payload: Any,
        solve: Solve,
        batch_key: Hashable | None = None,
        *,
        is_continuation: bool = False,
    ) -> None:
        self.payload = payload
        self.solve = solve
        self.batch_key = batch_key
        self.is_continuation = is_continuation
        self.is_wanted = True
        self.queued_at = monotonic()
        self.started_at: float | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def settle(self, result: Any) -> None:
        """Set the result, or raise an exception in the caller; call it on the job's event loop."""
        if self.timer is not None:
            self.timer.cancel()
        if self.future.done():
            return
        if isinstance(result, BaseException):
            self.future.set_exception(result)
            self.future.exception()  # retrieved, even if no caller is left
        else:
            self.future.set_result(result)


class Engine:
    """Runs jobs on one worker thread, first come first served.

    `queue_length` jobs may wait, for `queue_seconds`, while others run, for `work_seconds`.
    `prepare` is called first on the worker thread, and `on_fatal` with a sentence when the engine
    has failed for good.
    """

    def __init__(
        self,
        *,
        queue_length: int,
        queue_seconds: float,
        work_seconds: float = 30.0,
        max_batch: int = 64,
        prepare: Callable[[], object] = lambda: None,
        on_fatal: Callable[[str], object] = lambda _: None,
        metrics: Metrics | None = None,
    ) -> None:
        self.queue_length = queue_length
        self.queue_seconds = queue_seconds
        self.work_seconds = work_seconds
        self.max_batch = max_batch
        self.metrics = metrics or Metrics()
        self.is_stopping = False
        self._prepare = prepare
        self._on_fatal = on_fatal
        self._failure = ""
        self._waiting: deque[Job] = deque()
        self._continuing: deque[Job] = deque()
        self._running: list[Job] = []
        self._results: dict[asyncio.AbstractEventLoop, deque[tuple[Job, Any]]] = {}
        self._changed = Condition()
        # A daemon: a kernel that never returns must not keep the process alive.
        self._thread = Thread(target=self._work, name="inference", daemon=True)

    @property
    def n_jobs(self) -> int:
        """The number of jobs that run or wait, without those that have their result."""
        with self._changed:
            return sum(not job.future.done() for job in self._jobs())

    @property
    def is_alive(self) -> bool:
        """True while the worker thread runs; after `close` only if it hangs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the worker thread, without waiting for it; the first job does it too."""
        with self._changed:
            if self._thread.ident is None:
                self._thread.start()

    async def run(
        self, work: Callable[[], Result], client_left: ClientLeft | None = None
    ) -> Result:
        """Run `work` on the worker thread and return its result.

        Raises:
            Problem: 503 with Retry-After: the queue is full, the wait was too long, the server
                stops, or the engine has failed; 504: the work took too long.
            ClientDisconnected: the client disconnected before the work was done.
        """
        result: Result = await self.result(self.submit(Job(work, call_each)), client_left)
        return result

    def submit(self, job: Job) -> Job:
        """Put a job into the queue.

        Raises:
            Problem: 503, as `run`.
        """
        if self.is_stopping:
            raise server_stopping()
        if self._failure:
            raise self._failed()
        self.start()
        with self._changed:
            n_waiting = len(self._waiting) + 1
            # An idle worker takes one at once.
            if not job.is_continuation and n_waiting > self.queue_length + (not self._running):
                why = f"{self.queue_length} requests are waiting already"
                raise service_unavailable(
                    "queue-full", why, limit=self.queue_length, actual=n_waiting
                )
            (self._continuing if job.is_continuation else self._waiting).append(job)
            self._changed.notify()
        delay = min(self.queue_seconds, self.work_seconds)
        job.timer = job.loop.call_later(delay, self._check_time, job)
        return job

    async def result(self, job: Job, client_left: ClientLeft | None = None) -> Any:
        """Wait for a job's result and withdraw the job if its client disconnects first.

        Raises:
            Problem, ClientDisconnected: as `run`.
        """
        try:
            return await unless_client_leaves(job.future, client_left)
        finally:
            self.withdraw(job)

    def withdraw(self, job: Job) -> None:
        """Drop a job without waiting clients; call it on the job's event loop."""
        job.is_wanted = False
        if job.timer is not None:
            job.timer.cancel()
        if not job.future.done():
            job.future.cancel()
            self._dequeue(job)

    def close(self) -> None:
        """Finish the batch that runs, reject what waits, and end the thread; it blocks."""
        self.is_stopping = True
        with self._changed:
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(STOP_SECONDS)
        with self._changed:
            jobs = self._jobs()
        for job in jobs:
            self._deliver(job, server_stopping())

    # --- on the event loop ---

    def _check_time(self, job: Job) -> None:
        """Reject a job whose time is over, or look again when it may be."""
        now = monotonic()
        if job.started_at is None:
            seconds = job.queued_at + self.queue_seconds - now
            if seconds <= 0 and self._dequeue(job):
                waited = f"this request waited {self.queue_seconds:g} s and was not reached"
                job.settle(service_unavailable("queue-timeout", waited))
                return
            seconds = min(max(seconds, 0), self.work_seconds)
        else:
            seconds = job.started_at + self.work_seconds - now
            if seconds <= 0:
                self._time_out(job)
                return
        job.timer = job.loop.call_later(seconds, self._check_time, job)

    def _time_out(self, job: Job) -> None:
        took = f"this took longer than the {self.work_seconds:g} s that are allowed"
        way_out = "ask for fewer tokens, sites, layers or analyses"
        job.settle(Problem(504, "too-slow", f"{took} and was stopped; {way_out}"))
        job.loop.call_later((HANG_FACTOR - 1) * self.work_seconds, self._check_hang, job)

    def _check_hang(self, job: Job) -> None:
        with self._changed:
            hangs = job in self._running
        if hangs and not self.is_stopping:
            self._fail(f"a batch did not stop for {HANG_FACTOR * self.work_seconds:g} s")

    # --- on either ---

    def _jobs(self) -> list[Job]:
        return [*self._running, *self._continuing, *self._waiting]

    def _dequeue(self, job: Job) -> bool:
        """Take a job out of the queue; return False if the worker has taken it."""
        with self._changed:
            queue = self._continuing if job.is_continuation else self._waiting
            if job.started_at is None and job in queue:
                queue.remove(job)
                return True
            return False

    def _deliver(self, job: Job, result: Any, wait: float = 0) -> None:
        """Settle a job on its event loop, with all others that are ready after `wait` seconds."""
        results = self._results.setdefault(job.loop, deque())
        results.append((job, result))
        with suppress(RuntimeError):  # the event loop is closed
            if not wait:
                job.loop.call_soon_threadsafe(_settle_all, results)
            elif len(results) == 1:
                job.loop.call_soon_threadsafe(job.loop.call_later, wait, _settle_all, results)

    def _fail(self, why: str, error: BaseException | None = None) -> None:
        """Stop for good: reject every job and report the reason."""
        logger.critical("the inference engine failed, the server ends: %s", why, exc_info=error)
        self._failure = why.splitlines()[0]
        with self._changed:
            jobs = self._jobs()
        self._on_fatal(self._failure)
        for job in jobs:
            self._deliver(job, self._failed())

    def _failed(self) -> Problem:
        return service_unavailable(
            "engine-failed", f"the inference engine failed ({self._failure})"
        )

    # --- on the worker thread ---

    def _work(self) -> None:
        try:
            with cancellable(lambda: self.is_stopping):
                self._prepare()
            while batch := self._take():
                self._run(batch)
                del batch  # while it waits, nothing holds on to what the batch made
        except Cancelled:
            pass
        except BaseException as error:
            # The message of a panic may quote a client's text, so it is not logged.
            message = f": {error}" if isinstance(error, Exception) else ""
            self._fail(f"{type(error).__name__}{message}", error)

    def _take(self) -> list[Job]:
        """Wait for a job and take it with those of its batch key; none: the engine is closed."""
        with self._changed:
            while not (self._continuing or self._waiting or self.is_stopping or self._failure):
                self._changed.wait()
            if self.is_stopping or self._failure:
                return []
            batch = self._first_batch(self._waiting or self._continuing)
            self._running = batch
            return batch

    def _first_batch(self, queue: deque[Job]) -> list[Job]:
        """Return the first job and those that can run with it, so that none is overtaken."""
        first = queue[0]
        batch = [first]
        if first.batch_key is not None:
            alike = (job for job in queue if job.batch_key == first.batch_key)
            batch = [job for job, _ in zip(alike, range(self.max_batch), strict=False)]
        began = monotonic()
        for job in batch:
            queue.remove(job)
            job.started_at = began
        return batch

    def _run(self, batch: list[Job]) -> None:
        """Solve a batch; let waiting continuations have a turn after each result of other work."""
        if batch[0].is_continuation:
            self._solve_and_settle(batch)
        else:
            self._solve_and_settle(batch, after_each=self._run_continuations)
        with self._changed:
            self._running = []

    def _solve_and_settle(
        self, batch: list[Job], after_each: Callable[[], object] = lambda: None
    ) -> None:
        began, n_left = monotonic(), len(batch)
        for index, result in self._solve(batch):
            if isinstance(result, BaseException) and is_fatal(result):
                raise result
            n_left -= 1
            self._deliver(batch[index], without_frames(result), WAKE_SECONDS if n_left else 0)
            after_each()
        self.metrics.batch_size.observe(len(batch))
        self.metrics.work_seconds.observe(monotonic() - began)
        for job in batch:
            self.metrics.queue_seconds.observe(began - job.queued_at)

    def _run_continuations(self) -> None:
        with self._changed:
            if not self._continuing:
                return
            outer, batch = self._running, self._first_batch(self._continuing)
            self._running = [*outer, *batch]
        self._solve_and_settle(batch)
        with self._changed:
            self._running = outer

    def _solve(self, batch: list[Job]) -> Iterator[tuple[int, Any]]:
        """Yield the result or the `Exception` of each job; none that fails breaks another."""
        left = dict(enumerate(batch))
        try:
            with cancellable(lambda: not any(job.is_wanted for job in batch)):
                for index, result in batch[0].solve([job.payload for job in batch]):
                    del left[index]
                    yield index, result
        except Cancelled:
            return
        except Exception as error:
            if is_fatal(error):
                raise
            if len(batch) == 1:
                yield 0, error
                return
            for index, job in left.items():
                for _, result in self._solve([job]):
                    yield index, result


def _settle_all(results: deque[tuple[Job, Any]]) -> None:
    while results:
        job, result = results.popleft()
        job.settle(result)


def is_fatal(error: BaseException) -> bool:
    """Return True if the process must end: memory, device or a compiled library is in doubt."""
    if not isinstance(error, Exception):
        return not isinstance(error, Cancelled)
    return is_device_lost(error) or is_out_of_memory(error)


def without_frames(result: Any) -> Any:
    """Return the result, or raise its problem without frames that hold whole passes."""
    if isinstance(result, Problem):
        result.__cause__ = result.__context__ = None
        return result.with_traceback(None)
    return result


def call_each(works: list[Callable[[], Any]]) -> Iterator[tuple[int, Any]]:
    """Yield the index and the result of each call, as a `Solve`."""
    for index, work in enumerate(works):
        yield index, work()
