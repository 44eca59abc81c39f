"""A bounded queue in front of one inference thread.

PyTorch never runs on the event loop, so `/healthz` answers while a trace is computed. Passes
that run side by side would only share the same cores. A request is refused at once when the
queue is full, refused later when it waited too long, and dropped when its client left.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from app.problems import Problem, unexpected

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class ClientLeft(Problem):
    """The client closed its connection; the status is for our log, nobody reads the answer."""

    def __init__(self) -> None:
        super().__init__(499, "client-left", "the client left before it was answered")


async def _never() -> None:
    await asyncio.Event().wait()


class Engine:
    """Runs work, one piece at a time, on a thread of its own.

    Args:
        queue_length: how many pieces may wait while one runs.
        queue_seconds: how long a piece may wait before it is refused.
        retry_after_seconds: what a refused client is told to wait.
    """

    def __init__(
        self, *, queue_length: int, queue_seconds: float, retry_after_seconds: int
    ) -> None:
        self.queue_length = queue_length
        self.queue_seconds = queue_seconds
        self.retry_after_seconds = retry_after_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inference")
        self._jobs: set[Future[Any]] = set()

    @property
    def n_jobs(self) -> int:
        """How many pieces run or wait."""
        return len(self._jobs)

    async def run(
        self, work: Callable[[], Result], *, client_left: Callable[[], Awaitable[object]] = _never
    ) -> Result:
        """Run `work` on the inference thread and return what it returns.

        Args:
            work: called without arguments; what it raises is raised here.
            client_left: waits until nobody waits for the answer any more.

        Raises:
            Problem: 503 with Retry-After, where the queue is full or the wait was too long.
            ClientLeft: the client left before the work was done.
        """
        job = self._enqueue(work)
        result = asyncio.wrap_future(job)
        departure = asyncio.ensure_future(client_left())
        try:
            await self._wait(job, {result, departure})
            if not result.done():
                raise ClientLeft
            return result.result()
        finally:
            departure.cancel()
            result.cancel()

    def close(self) -> None:
        """Finish the piece that runs, drop those that wait, end the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _enqueue(self, work: Callable[[], Result]) -> Future[Result]:
        if self.n_jobs > self.queue_length:
            limits = {"limit": self.queue_length, "actual": self.n_jobs}
            waiting = f"{self.queue_length} requests are waiting already"
            raise self._refusal("queue-full", waiting, **limits)
        job = self._thread.submit(_contain, work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    async def _wait(
        self, job: Future[Result], futures: set[asyncio.Future[Result] | asyncio.Future[object]]
    ) -> None:
        first = asyncio.FIRST_COMPLETED
        done, _ = await asyncio.wait(futures, timeout=self.queue_seconds, return_when=first)
        if done:
            return
        if job.cancel():
            waited = f"this request waited {self.queue_seconds:g} s and was not reached"
            raise self._refusal("queue-timeout", waited)
        await asyncio.wait(futures, return_when=first)

    def _refusal(self, kind: str, why: str, **members: int) -> Problem:
        return Problem(
            503,
            kind,
            f"{why}; try again in {self.retry_after_seconds} s",
            headers={"Retry-After": str(self.retry_after_seconds)},
            **members,
        )


def _contain(work: Callable[[], Result]) -> Result:
    """Keep what is no `Exception` (a panic in a tokenizer, say) away from the event loop."""
    try:
        return work()
    except Exception:
        raise
    except BaseException as crash:
        logger.exception("a piece of work crashed")
        raise unexpected() from crash
