"""Cooperative cancellation: a computation checks between its steps whether to stop.

The caller says when to stop; the computation calls `check` between its steps:

    with cancellable(lambda: not is_wanted):
        model(ids)  # calls check() before every layer

The condition is held in a ContextVar, so passes in other threads are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(BaseException):
    """The computation was cancelled.

    Derives from `BaseException`, as `asyncio.CancelledError` does: code that handles a
    computation's errors must not catch it.
    """


_should_stop: ContextVar[Callable[[], bool] | None] = ContextVar("headlight_stop", default=None)


@contextmanager
def cancellable(should_stop: Callable[[], bool]) -> Iterator[None]:
    """Let `should_stop` cancel the computations inside the ``with`` block.

    Args:
        should_stop: whether to stop. Called before every layer and token, so it must be quick.
    """
    token = _should_stop.set(should_stop)
    try:
        yield
    finally:
        _should_stop.reset(token)


def check() -> None:
    """Stop here if this computation was cancelled; outside of `cancellable` do nothing.

    Raises:
        Cancelled: `should_stop` returned true.
    """
    should_stop = _should_stop.get()
    if should_stop is not None and should_stop():
        raise Cancelled


def current_condition() -> Callable[[], bool] | None:
    """Return the condition of `cancellable`, for a thread that watches a library's call."""
    return _should_stop.get()
