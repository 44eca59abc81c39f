"""The memory and the libraries of a process that is about to import PyTorch."""

import ctypes
import os
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

# Names of glibc's malloc.h for `mallopt`.
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8

MALLOC_VARIABLES = ("GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_")
"""With any of them the operator tunes the allocator."""

MMAP_BYTES = 2**20
"""A larger block of memory has its own mapping, which goes back to the system when it is freed.

By default glibc raises its bound to 32 MB as large tensors are freed, and later ones leave holes
between small objects that live long. At its start value of 128 KiB a trace of everything takes 1.3
times as long, as each mapping is zeroed; at 1 MiB a trace takes 0.96 to 1.04 times as long.
"""


def keep_heap_compact() -> None:
    """Have glibc use one heap, and map large blocks; call it before there are threads.

    By default each thread has its own heap, with its own holes. In ten minutes of mixed requests
    the free memory in them grew from 70 to 206 MB, more than half of which `malloc_trim` could not
    return. With one heap it is 40 to 80 MB, and does not grow.
    """
    if any(name in os.environ for name in MALLOC_VARIABLES):
        return  # the operator has chosen
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return  # another C library
    mallopt(M_ARENA_MAX, 1)
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)


def load_early() -> None:
    """Load the libraries of PyTorch on another thread while this one imports other modules.

    An import holds the interpreter while the system reads and links them, a seventh of the whole.
    """
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return
    library = Path(spec.submodule_search_locations[0], "lib", "libtorch_python.so")
    try:
        load = ctypes.CDLL(None).dlopen  # a function of the library: it releases the interpreter
    except (AttributeError, OSError, TypeError):
        return  # another system
    Thread(target=load, args=(bytes(library), os.RTLD_NOW), daemon=True).start()
