"""Finished answers, kept for whoever asks again, in a bounded number of bytes."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock

import numpy as np
import orjson

from headlight.metrics import Metrics
from headlight.model.trace import NamedArray
from headlight.serialization.trace import Analysis, Answer


class Cache:
    """Answers by the ids of their traces. Those asked for longest ago go first.

    An answer that would not fit, were it alone, is not kept. Any thread may ask.

    Args:
        max_bytes: what all answers may take together; 0 keeps none.
        metrics: told what was found; who then computes it says that it was not.
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
        if found is None:
            return None
        self.metrics.cache_hits.inc()
        return found[0]

    def put(self, answer: Answer) -> None:
        """Keep a copy of an answer, if it fits, and drop as many old ones as that takes."""
        if not self.max_bytes:
            return
        n_bytes = weigh(answer)
        if n_bytes > self.max_bytes:
            return
        kept = copied(answer)
        with self._lock:
            self._drop(answer.id)
            self._answers[answer.id] = kept, n_bytes
            self._n_bytes += n_bytes
            while self._n_bytes > self.max_bytes:
                self._drop(next(iter(self._answers)))

    def _drop(self, trace_id: str) -> None:
        if trace_id in self._answers:
            self._n_bytes -= self._answers.pop(trace_id)[1]


def weigh(answer: Answer) -> int:
    """The bytes of an answer's arrays, and of all else as JSON."""
    arrays = [*answer.trace.tensors.values()]
    for analysis in answer.analyses.values():
        arrays += analysis.arrays.values()
    beside = [dict(analysis.beside) for analysis in answer.analyses.values()]
    n_bytes = sum(array.data.nbytes for array in arrays)
    return n_bytes + len(orjson.dumps([answer.members(), beside]))


def copied(answer: Answer) -> Answer:
    """The answer with arrays of its own.

    What lives long must not lie between what a pass frees, nor hold on to more than itself: without
    copies, made when the pass is over, the process took three times what is counted.
    """
    analyses = {
        name: Analysis(arrays=_copies(found.arrays), beside=found.beside)
        for name, found in answer.analyses.items()
    }
    trace = replace(answer.trace, tensors=_copies(answer.trace.tensors))
    return replace(answer, trace=trace, analyses=analyses)


def _copies(arrays: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    return {
        name: NamedArray(array.axes, np.array(array.data, order="C"))
        for name, array in arrays.items()
    }
