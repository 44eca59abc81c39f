"""The hidden folders in which models are made, and what a process that was killed left of them.

Who makes a model holds a lock, which the system releases when the process ends, also by SIGKILL: a
folder without one is left over, whichever container looks.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

STAGED = ".adding-"


@contextmanager
def staging(directory: Path) -> Iterator[Path]:
    """Yield a new hidden folder of a models directory; remove it, with what is in it, at the end.

    What a killed process left there is removed first.
    """
    remove_leftovers(directory)
    staged = directory / f"{STAGED}{uuid4().hex}.part"
    with _held(staged):
        staged.mkdir(mode=0o700)
        yield staged


def remove_leftovers(directory: Path) -> None:
    """Remove the folders of a models directory whose process is gone, as far as they can be."""
    for path in directory.glob(f"{STAGED}*.part"):
        with suppress(Timeout, OSError), _held(path):
            pass


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, and remove both; Timeout: another process does."""
    lock = folder.with_suffix(".lock")
    with FileLock(lock, timeout=0):
        try:
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            lock.unlink(missing_ok=True)
