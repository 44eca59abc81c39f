"""The supervisor: keeps one worker's thread alive, and says so when it cannot."""

import logging
import traceback
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic

from headlight.errors import Problem
from headlight.inference.jobs import Queue
from headlight.inference.worker import Worker

logger = logging.getLogger(__name__)

MAX_FAILURES = 3
"""So many workers in a row that die before they are prepared, or hang, and there is no other."""

STUCK_AFTER = 3
"""A worker is given up when it has not stopped in so many times the seconds that work may take."""

PAUSE_SECONDS = 0.5
"""Between two tries to prepare a worker: memory, say, may be free again by then."""


class Supervisor:
    """Makes a worker, waits for its death, makes the next.

    A worker dies of a crash, or counts as dead when it hangs in something that never asks whether
    to stop; its thread is then left to itself.

    Args:
        make_worker: a new worker, not started.
        queue: where the worker's jobs wait.
        work_seconds: how long a batch may take before its callers are refused.
        refusal: what the callers of a dead worker are told.
        on_death: called with why, before those callers are told.
        on_end: called with why when no worker comes to life any more.
    """

    def __init__(
        self,
        make_worker: Callable[[], Worker],
        queue: Queue,
        *,
        work_seconds: float,
        refusal: Callable[[], Problem],
        on_death: Callable[[str], object],
        on_end: Callable[[str], object],
    ) -> None:
        self.queue = queue
        self.work_seconds = work_seconds
        self.has_given_up = False
        self._make_worker = make_worker
        self._refusal = refusal
        self._on_death = on_death
        self._on_end = on_end
        self._workers: list[Worker] = []
        self._is_closing = Event()
        self._thread = Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    @property
    def n_workers(self) -> int:
        """How many inference threads are alive, those that hang included."""
        return sum(worker.is_alive for worker in self._workers)

    def close(self, seconds: float) -> None:
        """Let the worker finish what it does, but wait no longer than so many seconds for it."""
        self._is_closing.set()
        self.queue.close()
        until = monotonic() + seconds
        for worker in self._workers:
            worker.join(max(0.0, until - monotonic()))
        self._thread.join(max(0.0, until - monotonic()))

    def _run(self) -> None:
        n_failures = 0
        while not self._is_closing.wait(PAUSE_SECONDS * n_failures):
            worker = self._make_worker()
            self._workers = [*(each for each in self._workers if each.is_alive), worker]
            worker.start()
            why = self._watch(worker)
            if self._is_closing.is_set():
                return
            n_failures = 0 if worker.is_prepared else n_failures + 1
            self._bury(worker, why)
            if max(n_failures, self.n_workers) >= MAX_FAILURES:
                self._give_up(worker, why)
                return

    def _watch(self, worker: Worker) -> str:
        """Wait for the worker's end; why it came."""
        while not worker.has_ended.wait(self.work_seconds):
            seconds = self.queue.running_seconds
            if seconds > STUCK_AFTER * self.work_seconds:
                return f"it did not stop for {seconds:.0f} s"
        worker.join(self.work_seconds)
        crash, worker.crash = worker.crash, None  # its frames hold on to what was being computed
        return "it was told to stop" if crash is None else _describe(crash)

    def _bury(self, worker: Worker, why: str) -> None:
        logger.error("the %s thread died: %s", worker.name, why)
        self._on_death(why.splitlines()[0])
        for job in self.queue.hand_over(None):
            job.settle(self._refusal())

    def _give_up(self, worker: Worker, why: str) -> None:
        logger.critical("no %s thread comes to life any more; the last died: %s", worker.name, why)
        self.has_given_up = True
        for job in self.queue.jobs():
            job.settle(self._refusal())
        self._on_end(why.splitlines()[0])


def _describe(crash: BaseException) -> str:
    """What it was and where. A panic's own words may quote somebody's text and are left out."""
    says = f": {crash}" if isinstance(crash, Exception) else ""
    frames = "".join(traceback.format_tb(crash.__traceback__))
    return f"{type(crash).__name__}{says}".partition("\n")[0] + f"\n{frames}"
