"""The hidden folders in which models are made, and what a process that was killed left of them.

Who makes a model holds a lock on its folder, which the system releases when the process ends, also
by SIGKILL. So a folder without a lock is left over, whichever container looks.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from time import time

if sys.platform != "win32":  # there a leftover stays until it is removed by hand
    from fcntl import LOCK_EX, LOCK_NB, flock

STAGED = ".adding-"
SECONDS_TO_LOCK = 1.0
"""A younger folder may get its lock this moment."""
_MADE = f"{STAGED}staged-"


@contextmanager
def staging(directory: Path) -> Iterator[Path]:
    """Yield a new hidden folder of a models directory; remove it, with what is in it, at the end.

    What a killed process left there is removed first.
    """
    remove_leftovers(directory)
    staged = Path(mkdtemp(prefix=_MADE, dir=directory))
    try:
        with _locked(staged):
            yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Remove the folders of a models directory whose process is gone, as far as they can be."""
    if sys.platform == "win32":
        return
    for path in directory.glob(f"{_MADE}*"):
        with suppress(OSError):  # it is held, or not ours
            if time() - path.stat().st_mtime > SECONDS_TO_LOCK:
                with _locked(path):
                    shutil.rmtree(path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, if the system has any; OSError: another process does."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
        yield
    finally:
        os.close(descriptor)
