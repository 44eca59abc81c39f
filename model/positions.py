"""Where a token stands: sinusoidal positional encodings."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def sinusoidal(
    n_positions: int, d_model: int, *, start: int = 0
) -> Float[Tensor, "position d_model"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) = cos of the same angle.

    Each pair of dimensions turns at its own frequency, so PE(pos + k) is a fixed rotation of
    PE(pos). Vaswani et al. 2017, section 3.5.

    Args:
        n_positions: how many positions, counted from `start`.
        d_model: width of the encoding, even.
        start: the first position.

    Returns:
        Float32 in [-1, 1], computed in float64.
    """
    positions = torch.arange(start, start + n_positions, dtype=torch.float64)
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = positions[:, None] / 10_000.0**exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()
