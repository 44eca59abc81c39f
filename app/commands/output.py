"""Printing for a terminal or a pipe, and writing files.

A file is written completely or not at all, and replaces another only if --force says so.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rich.console import Console, RenderableType

STANDARD_OUTPUT = Path("-")
WIDEST_LINE = 2_000
"""Characters of a line that goes to a file or another program."""

console = Console(highlight=False)
notes = Console(highlight=False, stderr=True)


class DestinationError(ValueError):
    """A file cannot be written; the message gives the reason and the way out."""


def show(*items: RenderableType) -> None:
    """Print, laid out for a terminal; into a pipe no line is wrapped or padded."""
    if console.is_terminal:
        console.print(*items, markup=False)
        return
    paper = io.StringIO()
    Console(file=paper, highlight=False, width=WIDEST_LINE).print(*items, markup=False)
    for line in paper.getvalue().splitlines():
        console.out(line.rstrip(), highlight=False)


@contextmanager
def writing(path: Path, *, is_forced: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write, for a `with` block; `-` is standard output.

    The file appears at the end of the block. If the block raises, nothing is written.

    Raises:
        DestinationError: it cannot be written, or exists and `is_forced` is false.
    """
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check(path, is_forced=is_forced)
    try:
        if path.exists() and not path.is_file():  # a pipe or a device is written into
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve()
        partial = target.with_name(f".{target.name}.partial")
        try:
            with partial.open("wb") as file:
                yield file
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise DestinationError(f"cannot write {path}: {_reason(error)}") from error


def check(path: Path, *, is_forced: bool = False) -> None:
    """Raise `DestinationError` if a file cannot be written, before anything is computed for it."""
    if path == STANDARD_OUTPUT:
        return
    try:
        if path.is_dir():
            raise DestinationError(f"cannot write {path}: it is a folder; name a file in it")
        if not path.parent.is_dir():
            folder = f"there is no folder {path.parent}; make it, or name another"
            raise DestinationError(f"cannot write {path}: {folder}")
        if path.is_file() and not is_forced:
            way_out = "name another file, or add --force to replace it"
            raise DestinationError(f"{path} already exists; {way_out}")
    except OSError as error:
        raise DestinationError(f"cannot write {path}: {_reason(error)}") from error


def in_words(error: Exception) -> str:
    """The message of an error; that of the operating system without its number."""
    if isinstance(error, OSError) and error.errno and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {_reason(error)}"
    return str(error)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
