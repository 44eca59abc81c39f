"""Learning rate schedules.

Every schedule has the same signature, ``schedule(step, steps=…, warmup=…, decay=…)``, and returns
a factor in (0, 1] on the peak learning rate:

- ``step``: the step about to be made, from 0 to ``steps`` − 1.
- ``steps``: the number of steps of the run.
- ``warmup``: the steps in which the rate rises.
- ``decay``: the steps at the end in which it falls; only `warmup_stable_decay` uses it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable


@runtime_checkable
class Schedule(Protocol):
    """A learning rate schedule."""

    def __call__(self, step: int, *, steps: int, warmup: int, decay: int) -> float:
        """Return the factor on the peak learning rate."""


def warmup_stable_decay(step: int, *, steps: int, warmup: int, decay: int) -> float:
    """Rise linearly, stay at 1, fall linearly to 0.

    Unlike a cosine's, the stable part does not depend on the length of the run, so a run can be
    extended. Hu et al. 2024, https://arxiv.org/abs/2404.06395.

    Args:
        step: the step about to be made, from 0.
        steps: the number of steps of the run.
        warmup: the steps in which the rate rises.
        decay: the steps at the end in which it falls.

    Returns:
        A factor in (0, 1].
    """
    falling = (steps - step) / max(1, decay)
    return max(0.0, min(_rise(step, warmup), falling))


def cosine(step: int, *, steps: int, warmup: int, decay: int = 0, floor: float = 0.1) -> float:  # noqa: ARG001 - the common signature
    """Rise linearly, then fall along half a cosine towards the floor.

    After the warmup the factor is

        floor + (1 − floor) · (1 + cos(π · (step − warmup) / (steps − warmup))) / 2.

    Loshchilov & Hutter 2017, equation 5, without restarts, https://arxiv.org/abs/1608.03983; the
    warmup is added.

    Args:
        step: the step about to be made, from 0.
        steps: the number of steps of the run; one more would reach the floor.
        warmup: the steps in which the rate rises.
        decay: unused; the rate falls in all steps after the warmup.
        floor: the factor at the end, in [0, 1].

    Returns:
        A factor in (0, 1].
    """
    done = min(1.0, max(0, step - warmup) / max(1, steps - warmup))
    return min(_rise(step, warmup), floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2)


def noam(step: int, *, steps: int = 0, warmup: int, decay: int = 0) -> float:  # noqa: ARG001 - the common signature
    """Rise linearly, then fall with the inverse square root of the step.

    Vaswani et al. 2017, section 5.3, https://arxiv.org/abs/1706.03762, counts steps from 1 and
    sets the rate itself:

        d_model^−0.5 · min(n^−0.5, n · warmup^−1.5).

    Here that is divided by its peak, d_model^−0.5 · warmup^−0.5 at n = warmup, so a run with this
    as its peak learning rate learns at exactly the paper's rates.

    Args:
        step: the step about to be made, from 0, so that n = step + 1.
        steps: unused; the rate does not depend on the length of the run.
        warmup: the steps in which the rate rises; 0 counts as 1.
        decay: unused; the rate falls in all steps after the warmup.

    Returns:
        A factor in (0, 1].
    """
    return min(_rise(step, warmup), math.sqrt(max(1, warmup) / (step + 1)))


def _rise(step: int, warmup: int) -> float:
    """Rise linearly to 1 at the last step of the warmup."""
    return min(1.0, (step + 1) / max(1, warmup))


SCHEDULES: Mapping[str, Schedule] = MappingProxyType(
    {"warmup_stable_decay": warmup_stable_decay, "cosine": cosine, "noam": noam}
)
