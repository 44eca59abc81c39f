"""Memory that is free is given back to the system.

An answer of many megabytes is made of pieces large and small, on several threads. What they leave
lies between what stays, and the C library keeps it: a server that was asked for much once would
hold that much for ever, and after ten thousand requests a hundred megabytes more than it needs.
"""

import asyncio
import ctypes
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
