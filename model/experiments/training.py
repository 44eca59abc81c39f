"""The small trainings of experiments: a few hundred steps of a few weights, and their frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from headlight.model.cancellation import check

N_FRAMES = 40
"""Frames after the one before the first step."""


def frames_of(steps: int) -> Iterator[range]:
    """Yield the steps between one frame and the next, up to `steps` in all."""
    ends = sorted({round(steps * part / N_FRAMES) for part in range(N_FRAMES + 1)})
    yield from map(range, ends, ends[1:])


def descend(
    weights: Sequence[Tensor],
    loss: Callable[[], Tensor],
    steps: int,
    optimizer: torch.optim.Optimizer,
) -> Iterator[float]:
    """Make steps of the optimizer; yield the loss before each.

    Args:
        weights: those that change, as the optimizer has them.
        loss: computes it, a scalar, from the weights as they are.
        steps: how many.
        optimizer: of the weights.

    Raises:
        Cancelled: the run is cancelled (`cancellation`).
    """
    for _ in range(steps):
        check()
        value = loss()
        for weight, gradient in zip(weights, torch.autograd.grad(value, weights), strict=True):
            weight.grad = gradient
        optimizer.step()
        yield value.item()
