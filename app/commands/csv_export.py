"""A trace as one long table: a line for each number, for pandas, R or a spreadsheet.

    site,head,query,query_token,key,key_token,position,position_token,d_model,value
    decoder.layers.0.self_attention.weights,0,0,<s>,0,<s>,,,,1.0

An axis that an array does not have is empty. Beside a place that is a token stands its text, and in
`token` what an analysis says that a number is of: a likely continuation. What was masked is `-inf`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headlight.client import NamedArray, Trace
from headlight.model.sites import tokens_along

AXES = ("layer", "head", "query", "key", "position", "d_model", "d_head", "d_ff", "expert")
"""The order of the columns; other axes follow as they come."""

_QUOTED = frozenset(',"\r\n')


def text_of(trace: Trace) -> Iterator[str]:
    """The table as text, some lines at a time; the first one names the columns."""
    table = _Table(trace)
    yield table.head()
    for site, array in table.arrays.items():
        yield from table.lines(site, array)


class _Table:
    """A trace's arrays and the columns that tell all of them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.arrays = dict(_arrays_of(trace))
        self.spelled = dict(_spelled(trace))
        named = dict.fromkeys(axis for array in self.arrays.values() for axis in array.axes)
        self.axes = sorted(named, key=lambda axis: AXES.index(axis) if axis in AXES else len(AXES))
        self.of_tokens = {
            axis
            for site, array in self.arrays.items()
            for axis, size in _sizes(array)
            if tokens_along(trace, site, axis, size)
        }

    def head(self) -> str:
        """The names of the columns."""
        columns = [f"{axis},{axis}_token" if axis in self.of_tokens else axis for axis in self.axes]
        return ",".join(["site", *columns, *(["token"] if self.spelled else []), "value"]) + "\n"

    def lines(self, site: str, array: NamedArray) -> Iterator[str]:
        """The lines of one array, those of a run along its last axis in one piece of text."""
        empty = {axis: "," if axis in self.of_tokens else "" for axis in self.axes}
        if not array.axes:
            told = ",".join([site, *empty.values(), *([""] if self.spelled else [])])
            yield f"{told},{array.data}\n"
            return
        places = {axis: self._places(site, axis, size) for axis, size in _sizes(array)}
        last = self.axes.index(array.axes[-1])
        texts = self.spelled.get(site)
        for index in np.ndindex(array.data.shape[:-1]):
            chosen = {axis: places[axis][at] for axis, at in zip(array.axes, index, strict=False)}
            cells = list((empty | chosen).values())
            before = ",".join([site, *cells[:last], ""])
            after = ",".join(["", *cells[last + 1 :], ""])
            # Each number as the shortest text that gives the same float32 again.
            values = array.data[index].astype(str).tolist()
            if self.spelled:
                tokens = _along(texts, index) if texts is not None else [""] * len(values)
                values = [f"{token},{value}" for token, value in zip(tokens, values, strict=True)]
            yield "".join(
                f"{before}{place}{after}{value}\n"
                for place, value in zip(places[array.axes[-1]], values, strict=True)
            )

    def _places(self, site: str, axis: str, size: int) -> list[str]:
        """What the places of an axis are called, each with its token where the column is there.

        Heads keep their numbers where only some are there.
        """
        heads = self.trace.heads
        numbers = heads if axis == "head" and heads is not None else range(size)
        if axis not in self.of_tokens:
            return list(map(str, numbers))
        tokens = [_cell(token.text) for token in tokens_along(self.trace, site, axis, size)]
        return [f"{n},{text}" for n, text in zip(numbers, tokens or [""] * size, strict=True)]


def _arrays_of(trace: Trace) -> Iterator[tuple[str, NamedArray]]:
    yield from trace.tensors.items()
    for name, analysis in trace.analyses.items():
        for key, array in analysis.arrays.items():
            yield f"analyses.{name}.{key}", array


def _spelled(trace: Trace) -> Iterator[tuple[str, Any]]:
    """By the name of an array what its numbers are of, nested as they are."""
    for name, analysis in trace.analyses.items():
        if "texts" in analysis.metadata:
            for key in ("ids", "probabilities"):
                if key in analysis.arrays:
                    yield f"analyses.{name}.{key}", analysis.metadata["texts"]


def _along(texts: Any, index: Sequence[int]) -> list[str]:
    """The texts of a run along the last axis."""
    for at in index:
        texts = texts[at]
    return [_cell(text) for text in texts]


def _cell(text: str) -> str:
    """A text as a cell, in quotation marks where it needs them (RFC 4180)."""
    if _QUOTED.isdisjoint(text):
        return text
    return '"{}"'.format(text.replace('"', '""'))


def _sizes(array: NamedArray) -> Iterator[tuple[str, int]]:
    yield from zip(array.axes, array.data.shape, strict=True)
