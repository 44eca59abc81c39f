"""Memory that is free is given back to the system.

An answer of many megabytes is made of pieces large and small, on several threads. What they leave
lies between what stays, and the C library keeps it: a server that was asked for much once would
hold that much for ever, and after ten thousand requests a hundred megabytes more than it needs.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable

# Often enough that nobody sees a peak for long, so rarely that it costs nothing.
EVERY_SECONDS = 10.0


async def give_back_memory(every_seconds: float = EVERY_SECONDS) -> None:
    """Give back what is free, again and again; where the C library cannot, do nothing.

    Args:
        every_seconds: how long to wait in between.
    """
    give_back = memory_trimmer()
    while give_back is not None:
        await asyncio.sleep(every_seconds)
        await asyncio.to_thread(give_back)


def memory_trimmer() -> Callable[[], object] | None:
    """What gives free memory back to the system; None where there is no such thing.

    It takes some milliseconds, without the interpreter's lock.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim  # of the GNU C library alone
    except (AttributeError, OSError, TypeError):
        return None
    return lambda: trim(0)


def set_aside_what_stays() -> None:
    """Spare what is there now from every later search for garbage.

    PyTorch and the framework are hundreds of thousands of objects that live as long as the process.
    A search through all of them stops every thread, and with it `/healthz`, for more than a
    tenth of a second.
    """
    gc.collect()
    gc.freeze()
