"""Ctrl-C and SIGTERM as a question that the loop asks between two steps."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Turn both signals into a flag, so that a step is never cut in the middle.

    Outside the main thread, where no signal arrives, the answer is always no.
    """
    requests: list[int] = []

    def note(number: int, _frame: object) -> None:
        requests.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread
        before = {}
    try:
        yield lambda: bool(requests)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
