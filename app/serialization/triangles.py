"""Causal arrays without what lies above their diagonal, which is known before it is sent.

A row of causal attention holds T(T + 1)/2 numbers that say something, of T². Packed, they follow
each other row by row. Three lines unpack them:

    full = np.full(shape, -np.inf if fill is None else fill, packed.dtype)
    rows, columns = np.tril_indices(shape[-1])
    full[..., rows, columns] = packed
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOWER_TRIANGLE = "lower-triangle"

Array = NDArray[Any]


@dataclass(frozen=True)
class Packed:
    """A causal array whose last two axes became one.

    Attributes:
        data: the numbers on and below the diagonal, `(..., T(T + 1)/2)`.
        shape: of the whole array.
        fill: what all others are, 0 or -inf.
    """

    data: Array
    shape: tuple[int, ...]
    fill: float


def pack(axes: tuple[str, ...], data: Array) -> Packed | None:
    """The array packed; None where it is not causal, or where that would save nothing.

    Args:
        axes: causal arrays end in `query key`.
        data: `(..., query, key)`.
    """
    if axes[-2:] != ("query", "key") or data.shape[-1] != data.shape[-2] or data.shape[-1] < 2:
        return None
    fill = _fill_of(data)
    if fill is None:
        return None
    size = data.shape[-1]
    flat = data.reshape(*data.shape[:-2], size * size)
    kept = np.flatnonzero(np.tri(size, dtype=bool))
    return Packed(np.take(flat, kept, axis=-1), data.shape, fill)


def _fill_of(data: Array) -> float | None:
    """What every number above the diagonal is, where that is 0 everywhere or -inf everywhere."""
    corners = data[..., 0, -1]
    for fill in (0.0, -np.inf):
        if (corners == fill).all() and _is_filled(data, fill):
            return fill
    return None


def _is_filled(data: Array, fill: float) -> bool:
    is_above = ~np.tri(data.shape[-1], dtype=bool)
    return bool(((data == fill) | ~is_above).all())
