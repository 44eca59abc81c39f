"""Work outside the inference thread: on other threads, limited in number, with cancellation.

`serving.engine` runs the passes of short texts. Long texts, experiments and large encodings run
on other threads. They stop between two steps once their client disconnects.
"""

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from time import monotonic
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Request

from headlight.model.cancellation import Cancelled, cancellable, check
from headlight.problems import Problem, service_unavailable

Result = TypeVar("Result")
ClientLeft = Callable[[], Awaitable[object]]
"""Waits until the client disconnects; raises if the rest of its request is invalid."""


class ClientDisconnected(Problem):
    """The client disconnected before its answer; the status is for the access log."""

    def __init__(self) -> None:
        super().__init__(499, "client-left", "the client left before it was answered")


def client_left(request: Request) -> ClientLeft:
    """Return a function that waits until the client of a request disconnects."""

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return disconnected


async def unless_client_leaves(
    future: asyncio.Future[Result], client_left: ClientLeft | None
) -> Result:
    """Return the result of a future, which others may await too, unless the client disconnects.

    Raises:
        ClientDisconnected: it did.
        Exception: that of the future, or of the client's request.
    """
    if client_left is None or future.done():
        return await asyncio.shield(future)
    # asyncio.wait does the same and takes three times as long.
    waiter = future.get_loop().create_future()
    watcher = asyncio.ensure_future(client_left())

    def wake(_: object) -> None:
        if not waiter.done():
            waiter.set_result(None)

    future.add_done_callback(wake)
    watcher.add_done_callback(wake)
    try:
        await waiter
        if not future.done():
            watcher.result()  # raises what is wrong with the rest of the request
            raise ClientDisconnected
        return future.result()
    finally:
        future.remove_done_callback(wake)
        watcher.cancel()
        if watcher.done() and not watcher.cancelled():
            watcher.exception()  # retrieved


async def run_in_thread(
    work: Callable[[], Result],
    threads: CapacityLimiter,
    client_left: ClientLeft | None = None,
    *,
    seconds: float = math.inf,
    too_slow: str = "",
) -> Result:
    """Return the result of work that calls `cancellation.check` now and then.

    Args:
        work: stops at its next check if the caller does not wait for it any more.
        threads: limits how many run at one time.
        client_left: of the client that waits for the result.
        seconds: how long the work may take on its thread.
        too_slow: the detail of the problem of work that took longer.

    Raises:
        Problem: 504, it took too long.
        ClientDisconnected: the client disconnected before it was done.
    """
    is_left = threading.Event()

    def run() -> Result:
        deadline = monotonic() + seconds
        try:
            with cancellable(lambda: is_left.is_set() or monotonic() > deadline):
                check()  # the client may have left while this waited for a thread
                return work()
        except Cancelled:
            late = Problem(504, "too-slow", too_slow)
            problem = ClientDisconnected() if is_left.is_set() else late
        try:
            raise problem  # not chained: the traceback holds the arrays of the work
        finally:
            del problem  # its own traceback holds this frame

    running = asyncio.ensure_future(anyio.to_thread.run_sync(run, limiter=threads))
    running.add_done_callback(lambda done: done.cancelled() or done.exception())  # retrieved
    try:
        return await unless_client_leaves(running, client_left)
    finally:
        is_left.set()


def in_daemon(work: Callable[[], Result], name: str) -> asyncio.Future[Result]:
    """Run work that may hang on a new daemon thread; call it on the event loop.

    Nothing waits for the thread, not the end of the process either: the threads of
    `concurrent.futures` and of AnyIO are waited for.

    Args:
        work: is cancelled at its next `cancellation.check` once the future is done.
        name: of the thread.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        result: Result | BaseException
        try:
            with cancellable(future.done):
                result = work()
        except BaseException as error:
            result = error
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(settle, future, result)

    threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())  # retrieved
    return future


def settle(future: asyncio.Future[Result], result: Result | BaseException) -> None:
    """Set the result of a future, or its exception, unless it is done."""
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)


class Places:
    """A bounded number of things that are open at one time.

    Args:
        limit: the largest number.
        kind: the kind of the problem that rejects one more.
        taken: a clause for its detail, such as "experiments are running".
    """

    def __init__(self, limit: int, kind: str, taken: str) -> None:
        self.limit, self.kind, self.taken = limit, kind, taken
        self.n_open = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """Take a place for as long as the block runs.

        Raises:
            Problem: 503 with Retry-After, all places are taken.
        """
        if self.n_open >= self.limit:
            why = f"{self.n_open} {self.taken} already"
            raise service_unavailable(self.kind, why, limit=self.limit, actual=self.n_open)
        self.n_open += 1
        try:
            yield
        finally:
            self.n_open -= 1


class Desk(Places):
    """Computations of one kind, on threads of their own, each within its time.

    They share no thread with other kinds, so one that takes long holds up only its own.

    Args:
        limit: how many there may be at one time, those that wait included.
        kind, taken: as `Places` has them.
        seconds: how long one may take on its thread.
        too_slow: the detail of the problem of one that took longer.
    """

    def __init__(self, limit: int, kind: str, taken: str, seconds: float, too_slow: str) -> None:
        super().__init__(limit, kind, taken)
        self.seconds, self.too_slow = seconds, too_slow
        self._thread = CapacityLimiter(1)

    async def run(self, work: Callable[[], Result], client_left: ClientLeft) -> Result:
        """Return the result of work that calls `cancellation.check` now and then.

        Raises:
            Problem: 503, all places are taken; 504, it took too long.
            ClientDisconnected: the client disconnected before it was done.
        """
        seconds, too_slow = self.seconds, self.too_slow
        with self.place():
            return await run_in_thread(
                work, self._thread, client_left, seconds=seconds, too_slow=too_slow
            )
