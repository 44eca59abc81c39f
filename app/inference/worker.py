"""The inference thread: takes jobs, solves those of one kind together, and dies of a crash."""

from collections.abc import Callable, Sequence
from threading import Event, Thread
from time import monotonic
from typing import Any

from headlight.errors import Problem
from headlight.inference.crashes import is_crash
from headlight.inference.jobs import Job, Queue
from headlight.metrics import Metrics
from headlight.model.cancellation import Cancelled, cancellable


class Worker:
    """A thread that solves jobs until another takes over.

    What a job raises goes to its caller. A crash ends the thread; its jobs are left unfinished in
    the queue, for `Supervisor` to answer and to make another worker.

    Args:
        queue: where jobs wait.
        prepare: called first, on the thread; what it raises ends the worker.
        max_batch: how many jobs are solved together at most.
        metrics: told how long jobs waited and took, and how many ran together.
        name: of the thread.
    """

    def __init__(
        self,
        queue: Queue,
        prepare: Callable[[], object],
        max_batch: int,
        metrics: Metrics,
        name: str = "inference",
    ) -> None:
        self.queue = queue
        self.name = name
        self.max_batch = max_batch
        self.metrics = metrics
        self.is_prepared = False
        self.crash: BaseException | None = None
        self.has_ended = Event()
        self._prepare = prepare
        # A daemon: a kernel that never returns must not keep the process alive.
        self._thread = Thread(target=self._run, name=name, daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Take jobs from now on. A thread that the system does not give is a crash, too."""
        self.queue.hand_over(self)
        try:
            self._thread.start()
        except RuntimeError as crash:
            self.crash = crash
            self.has_ended.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread's end, but no longer than so many seconds."""
        if self._thread.ident is not None:  # it is not started yet, where the server ends at once
            self._thread.join(seconds)

    def _run(self) -> None:
        try:
            with cancellable(lambda: self.queue.is_closed):
                self._prepare()
            self.is_prepared = True
            while self._take_and_solve():
                pass  # between two batches no name holds on to what the last one made
        except BaseException as crash:
            self.crash = crash
        finally:
            self.has_ended.set()

    def _take_and_solve(self) -> bool:
        batch = self.queue.take(self, self.max_batch)
        if not batch:
            return False
        began = monotonic()
        results = self._solve(batch)
        self.queue.finish(batch)  # first, so that who is answered finds the place free
        for job, result in zip(batch, results, strict=True):
            job.settle(_without_frames(result))
        self._measure(batch, began)
        return True

    def _solve(self, batch: list[Job]) -> Sequence[Any]:
        """A result or an `Exception` for each job.

        Raises:
            BaseException: a crash, in any of them.
        """
        try:
            with cancellable(lambda: not any(job.is_wanted for job in batch)):
                results = batch[0].solve([job.order for job in batch])
        except Cancelled:
            return [None] * len(batch)  # nobody is there to get it
        except Exception as error:
            if is_crash(error):
                raise
            if len(batch) == 1:
                return [error]
            return [result for job in batch for result in self._solve([job])]
        for result in results:
            if isinstance(result, BaseException) and is_crash(result):
                raise result
        return results

    def _measure(self, batch: list[Job], began: float) -> None:
        self.metrics.batch_size.observe(len(batch))
        self.metrics.work_seconds.observe(monotonic() - began)
        for job in batch:
            self.metrics.queue_seconds.observe(began - job.queued_at)


def _without_frames(result: Any) -> Any:
    """A problem says all that it has to; the frames it came from hold on to whole passes."""
    if isinstance(result, Problem):
        result.__cause__ = result.__context__ = None
        return result.with_traceback(None)
    return result
