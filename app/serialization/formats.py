"""Formats of responses with arrays: the media type, the type of the numbers, and their packing.

No format changes what was computed, so an answer is cached once and sent in any.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headlight.schemas import JSON, SAFETENSORS
from headlight.schemas.traces import DType
from headlight.serialization.compression import LEAST_BYTES, Coding

MEDIA_TYPES = (JSON, SAFETENSORS)

FILE = {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}}
"""The content of a file, for the documentation of routes."""


@dataclass(frozen=True, kw_only=True)
class ResponseFormat:
    """A response format.

    `dtype` uint16 sends numbers between 0 and 1 as value/65535; `triangle` leaves out the
    numbers above the diagonal of causal arrays; `coding` is the Content-Encoding, `small_coding`
    that of an answer too small to gain from compression.
    """

    media_type: str = JSON
    dtype: DType = "float32"
    triangle: bool = False
    coding: Coding = "identity"
    small_coding: Coding = "identity"

    def sized(self, n_bytes: int) -> "ResponseFormat":
        """Return this format with the content coding of an answer of about that size."""
        return self if n_bytes >= LEAST_BYTES else replace(self, coding=self.small_coding)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a response in this format, except Content-Type."""
        vary = {"Vary": "Accept, Accept-Encoding"}
        return vary if self.coding == "identity" else vary | {"Content-Encoding": self.coding}


@dataclass(frozen=True)
class Packed:
    """A causal array whose last two axes became one: its rows up to the diagonal, row by row.

    To unpack it:

        full = np.full(shape, -np.inf if fill is None else fill, packed.dtype)
        rows, columns = np.tril_indices(shape[-1])
        full[..., rows, columns] = packed

    Attributes:
        data: the numbers on and below the diagonal, `(..., T(T + 1)/2)`.
        shape: of the whole array.
        fill: of all others, 0 or -inf.
    """

    data: NDArray[Any]
    shape: tuple[int, ...]
    fill: float


def pack(axes: tuple[str, ...], data: NDArray[Any]) -> Packed | None:
    """Return an array `(..., query, key)` packed; None: not causal, or nothing is saved."""
    if axes[-2:] != ("query", "key") or data.shape[-1] != data.shape[-2] or data.shape[-1] < 2:
        return None
    fill = _fill_of(data)
    if fill is None:
        return None
    size = data.shape[-1]
    flat = data.reshape(*data.shape[:-2], size * size)
    kept = np.flatnonzero(np.tri(size, dtype=bool))
    return Packed(np.take(flat, kept, axis=-1), data.shape, fill)


def _fill_of(data: NDArray[Any]) -> float | None:
    """Return the number above the diagonal if it is 0 everywhere, or -inf everywhere."""
    corners = data[..., 0, -1]
    for fill in (0.0, -np.inf):
        if (corners == fill).all() and _is_filled(data, fill):
            return fill
    return None


def _is_filled(data: NDArray[Any], fill: float) -> bool:
    is_above = ~np.tri(data.shape[-1], dtype=bool)
    return bool(((data == fill) | ~is_above).all())
