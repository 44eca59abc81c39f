"""Printing for a terminal or a pipe, writing files, and traces as CSV.

A file is written completely or not at all, and replaces another only if --force says so.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import product, repeat
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO

from rich.console import Console, RenderableType
from rich.progress import Progress
from rich.text import Text

from headlight.model.sites import tokens_along

if TYPE_CHECKING:
    from headlight.client import NamedArray, Trace

STANDARD_OUTPUT = Path("-")
SECONDS_BETWEEN_LINES = 20
"""How often a log says how far a command is."""
WIDEST_LINE = 2_000
"""Characters of a line that goes to a file or another program."""

AXES = ("layer", "head", "query", "key", "position", "d_model", "d_head", "d_ff", "expert")
"""The order of the columns; other axes follow."""

_QUOTED = frozenset(',"\r\n\t')
_FORMULA = re.compile(r"[=+\-@\t\r]")

console = Console(highlight=False)
notes = Console(highlight=False, stderr=True)


class DestinationError(ValueError):
    """A file cannot be written; the message gives the reason and the way out."""


def show(*items: RenderableType) -> None:
    """Print in the layout of a terminal; do not wrap or pad lines that go into a pipe."""
    if console.is_terminal:
        console.print(*items, markup=False)
        return
    paper = io.StringIO()
    Console(file=paper, highlight=False, width=WIDEST_LINE).print(*items, markup=False)
    for line in paper.getvalue().splitlines():
        console.out(line.rstrip(), highlight=False)


def say(text: str | Text) -> None:
    """Print a line of a result as it is: brackets in it are no markup, and it is not wrapped."""
    console.print(text, markup=False, soft_wrap=True)


def note(text: str | Text) -> None:
    """Print a line about the work, as `say` does, to standard error."""
    notes.print(text, markup=False, soft_wrap=True)


@contextmanager
def progress(title: str) -> Iterator[Callable[[float], object]]:
    """Yield what is told the share that is done: a bar after a second, or lines in a log.

    Both say the time that is left, at the speed so far.
    """
    began = said = monotonic()
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(title, total=1.0, visible=False)

        def report(share: float) -> None:
            nonlocal said
            bar.update(task, completed=share, visible=monotonic() - began > 1)
            if not notes.is_terminal and monotonic() - said > SECONDS_BETWEEN_LINES:
                said = monotonic()
                left = timedelta(seconds=round((said - began) * (1 / share - 1))) if share else "?"
                note(f"{title}: {share:.0%} · {left} left")

        yield report


def print_json(value: object) -> None:
    """Print a value as JSON that people can read."""
    console.out(json.dumps(value, ensure_ascii=False, indent=2), highlight=False)


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
    """Return the message of an error; that of the operating system without its number."""
    if isinstance(error, OSError) and error.errno and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {_reason(error)}"
    return str(error)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def csv_lines(trace: Trace) -> Iterator[str]:
    """Yield a trace as a table in long format, a line for each number.

        site,head,query,query_token,key,key_token,position,position_token,d_model,value
        decoder.layers.0.self_attention.weights,0,0,<s>,0,<s>,,,,1.0

    An axis that an array does not have is empty. The `_token` column of an axis has the text of the
    token there; the column `token` has the likely token whose id or probability is in `value`.
    Masked numbers are `-inf`. A text that a spreadsheet would read as a formula has a tab before it
    (`text_cell`).
    """
    arrays, texts = dict(_arrays_of(trace)), dict(_texts_of(trace))
    named = dict.fromkeys(axis for array in arrays.values() for axis in array.axes)
    axes = sorted(named, key=lambda axis: AXES.index(axis) if axis in AXES else len(AXES))
    with_tokens = {
        axis
        for site, array in arrays.items()
        for axis, size in zip(array.axes, array.data.shape, strict=True)
        if tokens_along(trace, site, axis, size)
    }
    columns = [f"{axis},{axis}_token" if axis in with_tokens else axis for axis in axes]
    yield ",".join(["site", *columns, *(["token"] if texts else []), "value"]) + "\n"
    blank = ["," if axis in with_tokens else "" for axis in axes]
    for site, array in arrays.items():
        slots = [1 + axes.index(axis) for axis in array.axes]
        cells = [
            _cells_along(trace, site, axis, size, has_tokens=axis in with_tokens)
            for axis, size in zip(array.axes, array.data.shape, strict=True)
        ]
        # Each number as the shortest text that gives the same float32 again.
        values: Iterable[str] = array.data.ravel().astype(str).tolist()
        if texts:
            values = map("{},{}".format, texts.get(site, repeat("")), values)
        row = [site, *blank, ""]
        for index, value in zip(product(*cells), values, strict=True):
            for slot, cell in zip(slots, index, strict=True):
                row[slot] = cell
            row[-1] = value
            yield ",".join(row) + "\n"


def _cells_along(trace: Trace, site: str, axis: str, size: int, *, has_tokens: bool) -> list[str]:
    """Return the cells of each index of an axis; captured heads keep their numbers."""
    numbers = trace.heads if axis == "head" and trace.heads is not None else range(size)
    if not has_tokens:
        return list(map(str, numbers))
    tokens = [_cell(token.text) for token in tokens_along(trace, site, axis, size)]
    return [f"{n},{text}" for n, text in zip(numbers, tokens or [""] * size, strict=True)]


def _arrays_of(trace: Trace) -> Iterator[tuple[str, NamedArray]]:
    yield from trace.tensors.items()
    for name, analysis in trace.analyses.items():
        for key, array in analysis.arrays.items():
            yield f"analyses.{name}.{key}", array


def _texts_of(trace: Trace) -> Iterator[tuple[str, list[str]]]:
    """Yield the texts of the likely tokens whose ids or probabilities an array holds."""
    import numpy as np

    for name, analysis in trace.analyses.items():
        if "texts" in analysis.metadata:
            texts = np.array(analysis.metadata["texts"], dtype=object).ravel()
            for key in {"ids", "probabilities"} & set(analysis.arrays):
                yield f"analyses.{name}.{key}", list(map(_cell, texts))


def _cell(text: str) -> str:
    """Return a text as a cell, quoted if necessary (RFC 4180).

    The csv module of Python 3.11 does not quote a carriage return, which a token may be.
    """
    text = text_cell(text)
    if _QUOTED.isdisjoint(text):
        return text
    return '"{}"'.format(text.replace('"', '""'))


def text_cell(text: str) -> str:
    """Put a tab before a text that a spreadsheet would run as a formula.

    Such a text begins with = + - @, or with a tab or a carriage return, and is no number. One tab
    at the beginning of a cell is therefore never part of its text: remove it to have the text.
    https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"\t{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        return text.isascii() and text.strip() == text and math.isfinite(float(text))
    except ValueError:
        return False
