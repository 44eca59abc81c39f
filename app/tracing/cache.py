"""Kept traces by their ids, and the queries and keys of which tiles of their maps are computed."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Lock

import numpy as np
import orjson
from cachetools import LRUCache

from headlight.analyses.analysis import Result
from headlight.model.attention.observer import bin_width
from headlight.model.trace import NamedArray, Tiles
from headlight.problems import Problem, echo, over_limit, too_many_elements
from headlight.schemas.traces import MAX_TILE_CELLS, TileRequest
from headlight.serialization.trace import Answer, Arrays

OBJECT_BYTES, ARRAY_BYTES = 3_072, 448
"""The objects around an answer and around each of its arrays, measured with tracemalloc: uncounted,
a cache of small answers would take twice its bytes."""


class TraceCache:
    """Answers by the ids of their traces; any thread may ask. `max_bytes` of 0 keeps none."""

    def __init__(self, max_bytes: int) -> None:
        self._answers: LRUCache[str, Answer] = LRUCache(max_bytes, getsizeof=size_of)
        self._lock = Lock()

    @property
    def n_bytes(self) -> int:
        """The bytes of all answers."""
        return int(self._answers.currsize)

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, trace_id: str) -> bool:
        return trace_id in self._answers

    def get(self, trace_id: str) -> Answer | None:
        """Return the answer of that trace, if it is kept; it counts as asked for now."""
        with self._lock:
            return self._answers.get(trace_id)

    def put(self, answer: Answer) -> None:
        """Keep a copy of an answer without its timings, if it fits."""
        if not self._answers.maxsize:
            return
        kept = copied(answer.untimed())
        with self._lock, suppress(ValueError):  # larger than the cache
            self._answers[kept.id] = kept


def size_of(answer: Answer) -> int:
    """Estimate the bytes that a kept answer takes: its arrays, the rest as JSON, the objects."""
    arrays = [*answer.trace.tensors.values()]
    for analysis in answer.analyses.values():
        arrays += analysis.arrays.values()
    metadata = [dict(analysis.metadata) for analysis in answer.analyses.values()]
    n_bytes = OBJECT_BYTES + sum(ARRAY_BYTES + array.data.nbytes for array in arrays)
    return n_bytes + len(orjson.dumps([answer.members(), metadata]))


def copied(answer: Answer) -> Answer:
    """Return the answer with copies of its arrays.

    Long-lived arrays must not lie between what a pass frees, nor be views of larger ones. Without
    copies, made when the pass is over, the process took three times what is counted.
    """
    analyses = {
        name: Result(arrays=_copies(result.arrays), metadata=result.metadata)
        for name, result in answer.analyses.items()
    }
    trace = replace(answer.trace, tensors=_copies(answer.trace.tensors))
    return replace(answer, trace=trace, analyses=analyses)


def _copies(arrays: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    return {
        name: NamedArray(array.axes, np.array(array.data, order="C"))
        for name, array in arrays.items()
    }


class KeptTiles:
    """The queries and keys of traces by their ids; any thread may ask.

    Args:
        max_bytes: of all of them; the trace that was used least recently makes room.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: LRUCache[str, Mapping[str, Tiles]] = LRUCache(max_bytes, getsizeof=_n_bytes)
        self._lock = Lock()

    @property
    def n_bytes(self) -> int:
        """The bytes of all kept queries and keys."""
        return int(self._kept.currsize)

    def take(self, answer: Answer) -> Answer:
        """Return the answer without its queries and keys, which are kept if they fit."""
        kept = answer.trace.kept
        tiles: tuple[str, ...] = ()
        if kept and _n_bytes(kept) <= self._kept.maxsize:
            with self._lock:
                self._kept[answer.id] = kept
            tiles = tuple(kept)
        return replace(answer, trace=replace(answer.trace, kept={}), tiles=tiles)

    def get(self, trace_id: str) -> Mapping[str, Tiles] | None:
        """Return the attentions of a trace by path, if they are kept."""
        with self._lock:
            return self._kept.get(trace_id)


def _n_bytes(kept: Mapping[str, Tiles]) -> int:
    return sum(tiles.n_bytes for tiles in kept.values())


def tile_answer(
    trace_id: str, kept: Mapping[str, Tiles], request: TileRequest, max_elements: int
) -> Arrays:
    """Return a rectangle of one head's weights.

    Raises:
        Problem: 422, the trace has no such attention, head or place, or it is too much.
        Cancelled: the client left.
    """
    if request.attention not in kept:
        known = ", ".join(kept)
        detail = f"the trace has no attention {echo(request.attention)}; it has {known}"
        raise Problem(422, "unknown-site", detail)
    queries, keys = request.rectangle
    lengths = [end - begin for begin, end in (queries, keys)]
    if min(lengths) > 0:
        _require_few(lengths, request.resolution, max_elements)
    try:
        maps = kept[request.attention].tile(request.head, queries, keys, request.resolution)
    except ValueError as error:
        kind = "unknown-head" if "head" in str(error) else "outside-map"
        raise Problem(422, kind, f"{error}") from error
    widths = [bin_width(length, request.resolution) for length in lengths]
    names = list(maps)[:1] if widths == [1, 1] else list(maps)
    axes = ("query_bin", "key_bin")
    return Arrays(
        tensors={
            name: NamedArray(axes, maps[name].float().cpu().numpy().astype(np.float32, copy=False))
            for name in names
        },
        metadata={
            "id": trace_id,
            "attention": request.attention,
            "head": request.head,
            "queries": queries,
            "keys": keys,
            "tokens_per_bin": widths,
        },
    )


def _require_few(lengths: list[int], resolution: int, max_elements: int) -> None:
    n_cells, bins = lengths[0] * lengths[1], [-(-n // bin_width(n, resolution)) for n in lengths]
    if n_cells > MAX_TILE_CELLS:
        way_out = "ask for a smaller rectangle"
        raise over_limit("tile-cells", limit=MAX_TILE_CELLS, actual=n_cells, way_out=way_out)
    if (n_sent := 2 * bins[0] * bins[1]) > max_elements:
        way_out = "ask for a lower resolution"
        raise too_many_elements(limit=max_elements, actual=n_sent, way_out=way_out)
