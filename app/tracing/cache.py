"""Keep finished answers in a bounded number of bytes; the least recently used is dropped first."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Lock

import numpy as np
import orjson
from cachetools import LRUCache

from headlight.model.trace import NamedArray
from headlight.serialization.trace import Analysis, Answer


class TraceCache:
    """Answers by the ids of their traces; any thread may ask.

    Args:
        max_bytes: what all answers may take together; 0 keeps none.
    """

    def __init__(self, max_bytes: int) -> None:
        self._answers: LRUCache[str, Answer] = LRUCache(max_bytes, getsizeof=size_of)
        self._lock = Lock()

    @property
    def n_bytes(self) -> int:
        """What the answers take together."""
        return int(self._answers.currsize)

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, trace_id: str) -> bool:
        return trace_id in self._answers

    def get(self, trace_id: str) -> Answer | None:
        """The answer of that trace, if it is kept; it counts as asked for now."""
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
    """The bytes of an answer's arrays, and of all else as JSON."""
    arrays = [*answer.trace.tensors.values()]
    for analysis in answer.analyses.values():
        arrays += analysis.arrays.values()
    metadata = [dict(analysis.metadata) for analysis in answer.analyses.values()]
    n_bytes = sum(array.data.nbytes for array in arrays)
    return n_bytes + len(orjson.dumps([answer.members(), metadata]))


def copied(answer: Answer) -> Answer:
    """The answer with arrays of its own.

    Long-lived arrays must not lie between what a pass frees, nor hold on to more than themselves:
    without copies, made when the pass is over, the process took three times what is counted.
    """
    analyses = {
        name: Analysis(arrays=_copies(found.arrays), metadata=found.metadata)
        for name, found in answer.analyses.items()
    }
    trace = replace(answer.trace, tensors=_copies(answer.trace.tensors))
    return replace(answer, trace=trace, analyses=analyses)


def _copies(arrays: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    return {
        name: NamedArray(array.axes, np.array(array.data, order="C"))
        for name, array in arrays.items()
    }
