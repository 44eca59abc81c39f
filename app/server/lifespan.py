"""Tasks of the application's lifespan: stop signals and memory housekeeping."""

import asyncio
import ctypes
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

TRIM_SECONDS = 10.0
"""How often free memory is returned; a call takes some milliseconds, without the interpreter."""

TICK_SECONDS = 0.2


@contextmanager
def on_stop_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` when the process is told to stop, before uvicorn's own handler.

    uvicorn tells an application only when every connection has closed, and the connection of an
    open event stream does not close by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def chain(number: signal.Signals) -> object:
        before = signal.getsignal(number)

        def handle(sig: int, frame: FrameType | None) -> None:
            stop()
            if callable(before):
                before(sig, frame)

        signal.signal(number, handle)
        return before

    handlers = {number: chain(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in handlers.items():
            signal.signal(number, before)  # type: ignore[arg-type]


async def housekeeping(is_ready: Callable[[], bool]) -> None:
    """Freeze the garbage collector once the server is ready, then return free memory regularly.

    PyTorch and the framework are hundreds of thousands of objects that live as long as the process:
    full collections stalled /healthz for 140 ms. And large responses leave holes that the C library
    keeps: 100 MB after ten thousand requests.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # the application is a part of a larger process, whose own affair both are
    while not is_ready():  # noqa: ASYNC110 - the worker thread sets it
        await asyncio.sleep(TICK_SECONDS)
    gc.collect()
    gc.freeze()
    trim = memory_trimmer()
    while trim is not None:
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim)


def memory_trimmer() -> Callable[[], object] | None:
    """Returns free memory to the system; None if the C library is not GNU's."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return lambda: trim(0)
