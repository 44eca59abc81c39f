"""Finished answers, kept for whoever asks again, in a bounded number of bytes."""

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from app.metrics import Metrics
from app.wire import Answer


class Cache:
    """Answers by the ids of their traces. Those asked for longest ago go first.

    An answer that would not fit, were it alone, is not kept. Any thread may ask.

    Args:
        max_bytes: what all answers may take together; 0 keeps none.
        metrics: told what was found and what was not.
    """

    def __init__(self, max_bytes: int, metrics: Metrics) -> None:
        self.max_bytes = max_bytes
        self.metrics = metrics
        self._answers: OrderedDict[str, tuple[Answer, int]] = OrderedDict()
        self._n_bytes = 0
        self._lock = Lock()

    @property
    def n_bytes(self) -> int:
        """What the answers take together."""
        return self._n_bytes

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, trace_id: str) -> bool:
        return trace_id in self._answers

    def get(self, trace_id: str) -> Answer | None:
        """The answer of that trace, if it is kept; it counts as asked for now."""
        with self._lock:
            found = self._answers.get(trace_id)
            if found is not None:
                self._answers.move_to_end(trace_id)
        (self.metrics.cache_misses if found is None else self.metrics.cache_hits).inc()
        return None if found is None else found[0]

    def put(self, answer: Answer) -> None:
        """Keep an answer, if it fits, and drop as many old ones as that takes."""
        if not self.max_bytes:
            return
        n_bytes = weigh(answer)
        if n_bytes > self.max_bytes:
            return
        with self._lock:
            self._drop(answer.id)
            self._answers[answer.id] = answer, n_bytes
            self._n_bytes += n_bytes
            while self._n_bytes > self.max_bytes:
                self._drop(next(iter(self._answers)))

    def _drop(self, trace_id: str) -> None:
        if trace_id in self._answers:
            self._n_bytes -= self._answers.pop(trace_id)[1]


def weigh(answer: Answer) -> int:
    """The bytes that an answer holds on to: those of its arrays, and all else as JSON.

    An array that is a part of a larger one holds on to all of that; two parts of one count once.
    """
    arrays = [*answer.trace.tensors.values()]
    for analysis in answer.analyses.values():
        arrays += analysis.arrays.values()
    buffers = {id(buffer): buffer.nbytes for buffer in (_buffer(array.data) for array in arrays)}
    beside = [dict(analysis.beside) for analysis in answer.analyses.values()]
    return sum(buffers.values()) + len(orjson.dumps([answer.members(), beside]))


def _buffer(array: NDArray[Any]) -> NDArray[Any]:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
