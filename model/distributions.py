"""Functions of probability distributions along the last axis."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

Unit: TypeAlias = Literal["nats", "bits"]


def log_sum_exp(logits: Float[np.ndarray, "*rows n"]) -> Float[np.ndarray, "*rows 1"]:
    """Return the logarithm of Σ exp(x), float64; exp(x − ln Σ exp(x)) is the softmax.

    A prediction reads twenty of thousands of probabilities: to write all of them in float64 takes
    twice as long. The greatest is subtracted first, so nothing overflows.
    """
    tensor = _tensor_of(logits)
    greatest = tensor.amax(dim=-1, keepdim=True)
    sums = (tensor - greatest).exp_().sum(dim=-1, keepdim=True)
    return (greatest.double() + sums.double().log()).numpy()


def normalise(
    amounts: Float[np.ndarray, "*rows n"], axis: int = -1
) -> Float[np.ndarray, "*rows n"]:
    """Divide non-negative amounts by their sum along an axis; zeros if the sum is 0."""
    sums = amounts.sum(axis=axis, keepdims=True)
    shares: Float[np.ndarray, "*rows n"] = amounts / np.where(sums > 0, sums, 1)
    return shares


@overload
def entropy(
    probabilities: Float[Tensor, "*rows n"], unit: Unit, dtype: torch.dtype | None = None
) -> Float[Tensor, "*rows"]: ...
@overload
def entropy(
    probabilities: Float[np.ndarray, "*rows n"], unit: Unit, dtype: torch.dtype | None = None
) -> Float[np.ndarray, "*rows"]: ...
def entropy(
    probabilities: Tensor | np.ndarray, unit: Unit, dtype: torch.dtype | None = None
) -> Tensor | np.ndarray:
    """Return −Σ p·log p along the last axis, with 0·log 0 = 0.

    Args:
        probabilities: a tensor or an array; their sum need not be 1.
        unit: of the result: ``nats`` with the natural logarithm, ``bits`` with that to base 2.
        dtype: of the sum; None: that of the probabilities.
    """
    if isinstance(probabilities, np.ndarray):
        return entropy(torch.from_numpy(probabilities), unit, dtype).numpy()
    nats: Tensor = torch.special.entr(probabilities).sum(dim=-1, dtype=dtype)
    return nats if unit == "nats" else nats / math.log(2)


def top_k(
    numbers: Float[np.ndarray, "*rows n"], k: int
) -> tuple[Int[np.ndarray, "*rows rank"], Float[np.ndarray, "*rows rank"]]:
    """Return the indices of the `k` greatest numbers, greatest first, and these numbers.

    Raises:
        ValueError: k is less than 1.
    """
    if k < 1:
        raise ValueError(f"top ({k}) must be at least 1")
    k = min(k, numbers.shape[-1])
    greatest = _tensor_of(numbers).topk(k)
    return greatest.indices.numpy(), greatest.values.numpy()


def _tensor_of(numbers: Float[np.ndarray, "*rows n"]) -> Tensor:
    """Return the numbers as a tensor, which shares their memory if they can be written."""
    is_traced = torch.compiler.is_exporting()  # there is no memory yet
    return torch.from_numpy(numbers if is_traced else np.require(numbers, requirements=["C", "W"]))


def wilson(count: Any, of: Any) -> tuple[Any, Any]:
    """Return the interval of shares count/of at 95 %, numbers or arrays; `of` is at least 1.

    Wilson 1927, https://doi.org/10.2307/2276774.
    """
    share, width = count / of, 1.959964**2 / of
    half = (width * (share * (1 - share) + width / 4)) ** 0.5
    low, high = ((share + width / 2 + sign * half) / (1 + width) for sign in (-1, 1))
    return np.clip(low, 0, 1), np.clip(high, 0, 1)
