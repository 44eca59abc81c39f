"""A trace as one long table: a line for each number, for pandas, R or a spreadsheet.

    site,head,query,key,position,d_model,value
    decoder.layers.0.self_attention.weights,0,0,0,,,1.0

An axis that an array does not have is empty. What was masked is `-inf`.
"""

from collections.abc import Iterator

import numpy as np

from app.client import NamedArray, Trace

AXES = ("layer", "head", "query", "key", "position", "d_model", "d_head", "d_ff", "expert")
"""The order of the columns; other axes follow as they come."""


def text_of(trace: Trace) -> Iterator[str]:
    """The table as text, some lines at a time; the first one names the columns."""
    arrays = dict(_arrays_of(trace))
    named = dict.fromkeys(axis for array in arrays.values() for axis in array.axes)
    axes = sorted(named, key=lambda axis: AXES.index(axis) if axis in AXES else len(AXES))
    yield ",".join(["site", *axes, "value"]) + "\n"
    for site, array in arrays.items():
        yield from _lines(site, array, axes, trace.heads)


def _arrays_of(trace: Trace) -> Iterator[tuple[str, NamedArray]]:
    yield from trace.tensors.items()
    for name, analysis in trace.analyses.items():
        for key, array in analysis.arrays.items():
            yield f"analyses.{name}.{key}", array


def _lines(
    site: str, array: NamedArray, axes: list[str], heads: tuple[int, ...] | None
) -> Iterator[str]:
    """The lines of one array, those of a run along its last axis in one piece of text."""
    if not array.axes:
        yield f"{site},{',' * len(axes)}{array.data}\n"
        return
    numbers = [
        _numbers(axis, size, heads) for axis, size in zip(array.axes, array.data.shape, strict=True)
    ]
    last = axes.index(array.axes[-1])
    for index in np.ndindex(array.data.shape[:-1]):
        places = {
            axis: numbers[at][place]
            for at, (axis, place) in enumerate(zip(array.axes, index, strict=False))
        }
        cells = [places.get(axis, "") for axis in axes]
        before = ",".join([site, *cells[:last], ""])
        after = ",".join(["", *cells[last + 1 :], ""])
        # Each number as the shortest text that gives the same float32 again.
        values = array.data[index].astype(str).tolist()
        yield "".join(
            f"{before}{n}{after}{value}\n" for n, value in zip(numbers[-1], values, strict=True)
        )


def _numbers(axis: str, size: int, heads: tuple[int, ...] | None) -> list[str]:
    """What the places of an axis are called: heads keep their numbers where only some are there."""
    return list(map(str, heads if axis == "head" and heads is not None else range(size)))
