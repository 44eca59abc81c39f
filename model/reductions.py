"""Reductions: what is computed of a layer while the pass runs, from sites that are not kept.

The norms of 32 layers need each layer's streams once; held to the end, those take gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headlight.model.trace import Trace


@dataclass(frozen=True)
class Part:
    """Some sites of one layer, and what reads them once all of them were passed."""

    sites: tuple[str, ...]
    compute: Callable[[Trace], None]


@dataclass
class Reduction:
    """The parts of one pass over one text; sites that are not ``kept`` are dropped after use.

    ``make_trace`` makes a trace of captured tensors; the pass sets it.
    """

    parts: Sequence[Part]
    kept: Collection[str]
    make_trace: Callable[[Mapping[str, Tensor]], Trace] | None = None
    dropped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._open: dict[str, list[Part]] = {}
        for part in self.parts:
            for site in part.sites:
                self._open.setdefault(site, []).append(part)

    def take(self, tensors: dict[str, Tensor], site: str) -> None:
        """Compute the parts that this site completes, and drop the numbers that no other needs."""
        assert self.make_trace is not None
        for part in [*self._open.get(site, ())]:
            if not all(each in tensors for each in part.sites):
                continue
            # Not seen by what watches the functions of a model file.
            with torch._C.DisableTorchFunction():
                part.compute(self.make_trace({each: tensors[each] for each in part.sites}))
            for each in part.sites:
                self._open[each].remove(part)
                if not self._open[each] and each not in self.kept:
                    self.dropped.add(each)
                    # One number in its shape: what checks the shapes of a pass reads no more.
                    tensors[each] = tensors[each].new_zeros(1).expand(tensors[each].shape)
