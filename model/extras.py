"""Libraries that only some installations have or have newer, and what to do about it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version

CHECKED = {"torch": (2, 13), "transformers": (5, 23)}
"""The minor versions that the tests ran with, by library; those of constraints.txt."""


def missing(by: str, library: str, extra: str = "cluster") -> str:
    """Say that something needs a library, and how it is installed."""
    return (
        f"{by} needs {library}, which is not installed; run: pip install 'headlight-viz[{extra}]'"
    )


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


@cache
def warn_if_newer(library: str) -> None:
    """Warn once of a minor version of a library that no test ran with.

    Numbers of a card may differ in their last digits; a checkpoint of Transformers is judged by its
    self-check.
    """
    installed = version(library)
    checked = CHECKED[library]
    if tuple(map(int, installed.split(".")[:2])) > checked:
        newest = ".".join(map(str, checked))
        said = f"{library} {installed} is not checked with this version of Headlight; {newest} is"
        warnings.warn(said, stacklevel=3)
