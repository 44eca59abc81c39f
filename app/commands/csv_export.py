"""A trace as a table in long format: one line for each number, for pandas, R or a spreadsheet.

    site,head,query,query_token,key,key_token,position,position_token,d_model,value
    decoder.layers.0.self_attention.weights,0,0,<s>,0,<s>,,,,1.0

An axis that an array does not have is empty. The `_token` column of an axis has the text of the
token there; the column `token` has the likely token whose id or probability is in `value`. Masked
numbers are `-inf`. The csv module of Python 3.11 does not quote a carriage return, which a token
may be.
"""

from collections.abc import Iterable, Iterator
from itertools import product, repeat

import numpy as np

from headlight.client import NamedArray, Trace
from headlight.model.sites import tokens_along

AXES = ("layer", "head", "query", "key", "position", "d_model", "d_head", "d_ff", "expert")
"""The order of the columns; other axes follow."""

_QUOTED = frozenset(',"\r\n')


def csv_lines(trace: Trace) -> Iterator[str]:
    """The lines of the table; the first names the columns."""
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
    """The cells of each index of an axis; heads keep their numbers if only some were captured."""
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
    """The texts of the likely tokens whose ids or probabilities an array holds, by its name."""
    for name, analysis in trace.analyses.items():
        if "texts" in analysis.metadata:
            texts = np.array(analysis.metadata["texts"], dtype=object).ravel()
            for key in {"ids", "probabilities"} & set(analysis.arrays):
                yield f"analyses.{name}.{key}", list(map(_cell, texts))


def _cell(text: str) -> str:
    """A text as a cell, quoted if necessary (RFC 4180)."""
    if _QUOTED.isdisjoint(text):
        return text
    return '"{}"'.format(text.replace('"', '""'))
