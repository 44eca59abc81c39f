"""Stopping a computation between two of its steps, where nobody waits for its result any more.

Who runs a pass says inside which block, and how it is known that it should stop; what computes
asks between its steps:

    with interruptible(lambda: not is_wanted):
        model(ids)  # calls check() before every layer

A ContextVar holds the question, so that passes in other threads are not concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Interrupted(BaseException):
    """A computation was told to stop.

    No `Exception`: what handles the errors of a computation must not take it for one of them.
    """


_should_stop: ContextVar[Callable[[], bool] | None] = ContextVar("headlight_stop", default=None)


@contextmanager
def interruptible(should_stop: Callable[[], bool]) -> Iterator[None]:
    """Let computations inside the ``with`` block end early.

    Args:
        should_stop: whether to stop; asked before every layer and token, so it must be quick.
    """
    token = _should_stop.set(should_stop)
    try:
        yield
    finally:
        _should_stop.reset(token)


def check() -> None:
    """Stop here if this computation should stop; outside of `interruptible` none does.

    Raises:
        Interrupted: it should.
    """
    should_stop = _should_stop.get()
    if should_stop is not None and should_stop():
        raise Interrupted
