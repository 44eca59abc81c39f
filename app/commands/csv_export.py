"""A trace as a table in long format, one line for each number: for pandas, R or a spreadsheet.

    site,head,query,query_token,key,key_token,position,position_token,d_model,value
    decoder.layers.0.self_attention.weights,0,0,<s>,0,<s>,,,,1.0

An axis that an array does not have is empty. The `_token` column beside an axis has the text of the
token there; the column `token` has the likely token whose id or probability is in `value`. Masked
numbers are `-inf`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headlight.client import NamedArray, Trace
from headlight.model.sites import tokens_along

AXES = ("layer", "head", "query", "key", "position", "d_model", "d_head", "d_ff", "expert")
"""The order of the columns; other axes follow."""

_QUOTED = frozenset(',"\r\n')


def csv_lines(trace: Trace) -> Iterator[str]:
    """The lines of the table, several at a time; the first names the columns."""
    table = _Table(trace)
    yield table.head()
    for site, array in table.arrays.items():
        yield from table.lines(site, array)


class _Table:
    """The arrays of a trace and the columns that describe them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.arrays = dict(_arrays_of(trace))
        self.token_texts = dict(_token_texts(trace))
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
        return (
            ",".join(["site", *columns, *(["token"] if self.token_texts else []), "value"]) + "\n"
        )

    def lines(self, site: str, array: NamedArray) -> Iterator[str]:
        """The lines of one array, those along its last axis together."""
        empty = {axis: "," if axis in self.of_tokens else "" for axis in self.axes}
        if not array.axes:
            line = ",".join([site, *empty.values(), *([""] if self.token_texts else [])])
            yield f"{line},{array.data}\n"
            return
        places = {axis: self._places(site, axis, size) for axis, size in _sizes(array)}
        last = self.axes.index(array.axes[-1])
        texts = self.token_texts.get(site)
        for index in np.ndindex(array.data.shape[:-1]):
            chosen = {axis: places[axis][at] for axis, at in zip(array.axes, index, strict=False)}
            cells = list((empty | chosen).values())
            before = ",".join([site, *cells[:last], ""])
            after = ",".join(["", *cells[last + 1 :], ""])
            # Each number as the shortest text that gives the same float32 again.
            values = array.data[index].astype(str).tolist()
            if self.token_texts:
                tokens = _along(texts, index) if texts is not None else [""] * len(values)
                values = [f"{token},{value}" for token, value in zip(tokens, values, strict=True)]
            yield "".join(
                f"{before}{place}{after}{value}\n"
                for place, value in zip(places[array.axes[-1]], values, strict=True)
            )

    def _places(self, site: str, axis: str, size: int) -> list[str]:
        """The index of each place of an axis, with its token if the axis has a token column.

        Heads keep their numbers if only some were captured.
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


def _token_texts(trace: Trace) -> Iterator[tuple[str, Any]]:
    """The token texts that belong to the numbers of an array, by the array's name."""
    for name, analysis in trace.analyses.items():
        if "texts" in analysis.metadata:
            for key in ("ids", "probabilities"):
                if key in analysis.arrays:
                    yield f"analyses.{name}.{key}", analysis.metadata["texts"]


def _along(texts: Any, index: Sequence[int]) -> list[str]:
    """The texts along the last axis at an index."""
    for at in index:
        texts = texts[at]
    return [_cell(text) for text in texts]


def _cell(text: str) -> str:
    """A text as a cell, quoted if necessary (RFC 4180)."""
    if _QUOTED.isdisjoint(text):
        return text
    return '"{}"'.format(text.replace('"', '""'))


def _sizes(array: NamedArray) -> Iterator[tuple[str, int]]:
    yield from zip(array.axes, array.data.shape, strict=True)
