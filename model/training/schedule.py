"""How the learning rate moves over a run."""

from __future__ import annotations


def warmup_stable_decay(step: int, *, steps: int, warmup: int, decay: int) -> float:
    """Rise linearly, stay at 1, fall linearly to 0: the factor on the peak learning rate.

    Unlike a cosine, the stable part does not depend on the length of the run, so a run can be
    prolonged. Hu et al. 2024, https://arxiv.org/abs/2404.06395.

    Args:
        step: the step about to be made, from 0.
        steps: how many steps the run has.
        warmup: how many of them rise.
        decay: how many of them fall, at the end.

    Returns:
        A factor in (0, 1].
    """
    rising = (step + 1) / max(1, warmup)
    falling = (steps - step) / max(1, decay)
    return max(0.0, min(1.0, rising, falling))
