"""Positional encodings.

| scheme     | effect                                                    | source                 |
|------------|-----------------------------------------------------------|------------------------|
| sinusoidal | adds waves of fixed frequencies to the embedding          | Vaswani et al. 2017    |
| learned    | adds a trained vector for each position                   | Radford et al. 2018    |
| rotary     | rotates queries and keys by angles that grow by position  | Su et al. 2021         |
| alibi      | lowers each score by the distance times the head's slope  | Press et al. 2022      |
| none       | none                                                      | Haviv et al. 2022      |
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.trace import NamedArray

BASE = 10_000.0
"""Of the frequencies. Vaswani et al. 2017, section 3.5."""


def sinusoidal(
    n_positions: int, d_model: int, *, start: int = 0
) -> Float[Tensor, "position d_model"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) = cos of the same angle.

    Each pair of dimensions rotates at its own frequency, so PE(pos + k) is a rotation of PE(pos)
    that does not depend on pos. Vaswani et al. 2017, section 3.5.

    Args:
        n_positions: number of positions from `start` on.
        d_model: width of the encoding, even.
        start: the first position.

    Returns:
        Float32 in [-1, 1], computed in float64.
    """
    angles = position_angles(n_positions, d_model, start=start)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()


def position_angles(
    n_positions: int, width: int, *, start: int = 0
) -> Float[Tensor, "position frequency"]:
    """Pos / 10000^(2i/width) for each of the width/2 frequencies, in radians and float64."""
    positions = torch.arange(start, start + n_positions, dtype=torch.float64)
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
    return positions[:, None] / BASE**exponents


def frequencies(width: int) -> Float[Tensor, " frequency"]:
    """Return the rotation of each pair from one position to the next, in radians."""
    return position_angles(1, width, start=1)[0]


def rotate(
    vectors: Float[Tensor, "*batch position d_head"], *, start: int = 0
) -> Float[Tensor, "*batch position d_head"]:
    """Rotate each pair of dimensions (2i, 2i+1) by pos / 10000^(2i/d_head) radians.

    The product of a query at position m and a key at position n then depends only on m − n. Su et
    al. 2021, https://arxiv.org/abs/2104.09864, section 3.2. As there, pairs are adjacent
    dimensions; Hugging Face's Llama pairs dimension i with i + d_head/2.

    Args:
        vectors: queries or keys of the positions from `start` on; d_head is even.
        start: the first position.
    """
    n_positions, d_head = vectors.shape[-2:]
    angles = position_angles(n_positions, d_head, start=start)
    cosines, sines = angles.cos().to(vectors), angles.sin().to(vectors)
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    rotated = (even * cosines - odd * sines, even * sines + odd * cosines)
    return torch.stack(rotated, dim=-1).flatten(-2)


def alibi_slopes(n_heads: int) -> Float[Tensor, " head"]:
    """Return the slope of each head: 2^(−8/n), 2^(−16/n), … , 2^(−8) for n heads.

    If n is not a power of two: the slopes for the next smaller power, then every other slope for
    the next greater one. Press et al. 2022, https://arxiv.org/abs/2108.12409, section 3.
    """
    below = 2 ** math.floor(math.log2(n_heads))
    ratios = torch.arange(1, below + 1, dtype=torch.float64) * 8 / below
    between = (2 * torch.arange(n_heads - below, dtype=torch.float64) + 1) * 4 / below
    return (2.0 ** -torch.cat([ratios, between])).float()


def alibi_bias(
    n_heads: int, n_queries: int, n_keys: int, device: torch.device | None = None
) -> Float[Tensor, "head query key"]:
    """Return −slope·|query − key|, the bias that ALiBi adds to the scores.

    The queries are the last `n_queries` of the `n_keys` positions. A decoder uses the half below
    the diagonal, as in the paper; an encoder uses both.
    """
    keys = torch.arange(n_keys, device=device)
    distance = (keys[n_keys - n_queries :, None] - keys).abs()
    # Negating the integer distances instead of the product avoids −0.
    return alibi_slopes(n_heads).to(device)[:, None, None] * -distance


# --- as named arrays, without a text --------------------------------------------------------------


def sinusoidal_encoding(n_positions: int, d_model: int) -> dict[str, NamedArray]:
    """Return the sinusoidal encoding and its frequencies.

    Args:
        n_positions: positions from 0 on.
        d_model: width of the encoding, even.

    Returns:
        ``encoding`` (position, d_model) in [−1, 1], and ``frequencies`` (pair): the rotation of
        each pair of dimensions from one position to the next, in radians.
    """
    return {
        "encoding": as_named("position d_model", sinusoidal(n_positions, d_model)),
        "frequencies": as_named("pair", frequencies(d_model)),
    }


def rotary_encoding(n_positions: int, d_head: int) -> dict[str, NamedArray]:
    """Return the rotation of each pair of dimensions of a query or key by position.

    Args:
        n_positions: positions from 0 on.
        d_head: width of a head, even.

    Returns:
        ``angles``, in radians, ``cos`` and ``sin``, each (position, pair).
    """
    angles = position_angles(n_positions, d_head)
    rotations = {"angles": angles, "cos": angles.cos(), "sin": angles.sin()}
    return {name: as_named("position pair", tensor) for name, tensor in rotations.items()}


def alibi_encoding(n_positions: int, n_heads: int) -> dict[str, NamedArray]:
    """Return the slopes and biases of ALiBi, on both sides of the diagonal.

    Args:
        n_positions: positions from 0 on.
        n_heads: number of heads.

    Returns:
        ``slopes`` (head), and ``bias`` (head, query, key): −slope·|query − key|.
    """
    return {
        "slopes": as_named("head", alibi_slopes(n_heads)),
        "bias": as_named("head query key", alibi_bias(n_heads, n_positions, n_positions)),
    }


def as_named(axes: str, tensor: Tensor) -> NamedArray:
    """Return a tensor as a float32 array whose axes have these names."""
    return NamedArray(tuple(axes.split()), tensor.detach().float().cpu().numpy())
