"""Jobs and the bounded queue they wait in, between the event loops and the inference thread.

Who owns what, and so why no update is lost: the deque, what runs and who takes from the queue are
touched under the queue's lock alone. `Job.started_at` is written once, under that lock, by the
thread that takes the job. `Job.is_wanted` is written by the job's event loop alone and read by the
thread. A job's answer is a future of its event loop and set on that loop alone.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from threading import Condition
from time import monotonic
from typing import Any

Solve = Callable[[list[Any]], Sequence[Any]]


class Job:
    """What one caller waits for. Made on the caller's event loop.

    Args:
        kind: waiting jobs of equal kind are taken together; None: taken alone.
        order: what is asked for.
        solve: gives for a list of orders of this kind a result or an `Exception` each.
        queued_at: when its wait began, by the monotonic clock; None: now.
        is_begun: whether it is a part of what was let in before.
    """

    __slots__ = (
        "answer",
        "is_begun",
        "is_wanted",
        "kind",
        "loop",
        "order",
        "queued_at",
        "solve",
        "started_at",
    )

    def __init__(
        self,
        kind: Hashable | None,
        order: Any,
        solve: Solve,
        *,
        queued_at: float | None = None,
        is_begun: bool = False,
    ) -> None:
        self.kind = kind
        self.order = order
        self.solve = solve
        self.is_wanted = True
        self.is_begun = is_begun
        self.queued_at = monotonic() if queued_at is None else queued_at
        self.started_at: float | None = None
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self.loop.create_future()

    def settle(self, result: Any) -> None:
        """Give the caller a result, or raise an exception there; any thread may call it.

        Nothing happens where the caller has its answer or is gone.
        """
        with suppress(RuntimeError):  # its event loop is closed
            self.loop.call_soon_threadsafe(self._settle, result)

    def forget(self) -> None:
        """The caller has its answer or does not want one; called on its event loop."""
        self.is_wanted = False
        self.answer.cancel()

    def _settle(self, result: Any) -> None:
        if self.answer.done():
            return
        if isinstance(result, BaseException):
            self.answer.set_exception(result)
        else:
            self.answer.set_result(result)


class QueueFull(Exception):
    """One job more than may wait."""

    def __init__(self, actual: int) -> None:
        super().__init__(f"{actual} jobs would wait")
        self.actual = actual


class Queue:
    """Jobs, first come first served; one worker at a time takes them.

    Args:
        length: how many may wait while others run.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._worker: object = None
        self.is_closed = False
        self._changed = Condition()

    @property
    def n_jobs(self) -> int:
        """How many jobs run or wait."""
        with self._changed:
            return len(self._running) + len(self._waiting)

    @property
    def running_seconds(self) -> float:
        """How long what runs has been running; 0 where nothing does."""
        with self._changed:
            began = self._running[0].started_at if self._running else None
        return 0.0 if began is None else monotonic() - began

    def put(self, job: Job) -> None:
        """Let a job wait.

        Raises:
            QueueFull: too many do, and it is no part of what was let in before.
        """
        with self._changed:
            n_waiting = len(self._waiting) + 1
            # A worker that has nothing to do will take one at once.
            if not job.is_begun and n_waiting > self.length + (not self._running):
                raise QueueFull(n_waiting)
            self._waiting.append(job)
            self._changed.notify_all()

    def withdraw(self, job: Job) -> bool:
        """Take back a job; False where it does not wait any more."""
        with self._changed:
            if job.started_at is not None or job not in self._waiting:
                return False
            self._waiting.remove(job)
            return True

    def take(self, worker: object, max_batch: int) -> list[Job]:
        """Wait for a job and take it, with those of its kind that wait too.

        Who came first is always among them, so nobody is overtaken for ever.

        Returns:
            Jobs, the first one first; none where another worker took over or the queue is closed.
        """
        with self._changed:
            while self._is_served_by(worker) and not self._waiting:
                self._changed.wait()
            if not self._is_served_by(worker):
                return []
            self._running = self._first_batch(max_batch)
            began = monotonic()
            for job in self._running:
                job.started_at = began
            return self._running

    def finish(self, batch: list[Job]) -> None:
        """Note that a batch runs no longer."""
        with self._changed:
            if batch is self._running:
                self._running = []

    def hand_over(self, worker: object) -> list[Job]:
        """Let another worker take jobs from now on; None: nobody, for the time being.

        Returns:
            What the worker before it took and did not finish.
        """
        with self._changed:
            lost, self._running = self._running, []
            self._worker = worker
            self._changed.notify_all()
            return lost

    def close(self) -> None:
        """Let no worker take jobs any more."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def jobs(self) -> list[Job]:
        """All that run or wait."""
        with self._changed:
            return [*self._running, *self._waiting]

    def _is_served_by(self, worker: object) -> bool:
        return worker is self._worker and not self.is_closed

    def _first_batch(self, max_batch: int) -> list[Job]:
        first = self._waiting[0]
        batch = [first]
        if first.kind is not None:
            alike = (job for job in self._waiting if job.kind == first.kind)
            batch = [job for job, _ in zip(alike, range(max_batch), strict=False)]
        for job in batch:
            self._waiting.remove(job)
        return batch
