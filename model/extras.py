"""Libraries that only some installations have, and what to install for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def missing(by: str, library: str, extra: str = "cluster") -> str:
    """Say that something needs a library, and how it is installed."""
    return f"{by} needs {library}, which is not installed; run: pip install 'headlight[{extra}]'"


@contextmanager
def needed_by(by: str, library: str, extra: str = "cluster") -> Iterator[None]:
    """Name what needs the library that is imported inside the block.

    Raises:
        ImportError: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(missing(by, library, extra)) from error
