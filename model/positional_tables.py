"""Positional encodings as named arrays, without a text."""

from __future__ import annotations

from torch import Tensor

from headlight.model.positions import (
    alibi_bias,
    alibi_slopes,
    frequencies,
    position_angles,
    sinusoidal,
)
from headlight.model.trace import NamedArray
from headlight.model.transformer import Transformer

Arrays = dict[str, NamedArray]


def sinusoidal_encoding(n_positions: int, d_model: int) -> Arrays:
    """The sinusoidal encoding and its frequencies.

    Args:
        n_positions: positions from 0 on.
        d_model: width of the encoding, even.

    Returns:
        ``encoding`` (position, d_model) in [−1, 1], and ``frequencies`` (pair): the rotation of
        each pair of dimensions from one position to the next, in radians.
    """
    return {
        "encoding": _named("position d_model", sinusoidal(n_positions, d_model)),
        "frequencies": _named("pair", frequencies(d_model)),
    }


def rotary_encoding(n_positions: int, d_head: int) -> Arrays:
    """The rotation of each pair of dimensions of a query or key by position.

    Args:
        n_positions: positions from 0 on.
        d_head: width of a head, even.

    Returns:
        ``angles``, in radians, ``cos`` and ``sin``, each (position, pair).
    """
    angles = position_angles(n_positions, d_head)
    rotations = {"angles": angles, "cos": angles.cos(), "sin": angles.sin()}
    return {name: _named("position pair", tensor) for name, tensor in rotations.items()}


def alibi_encoding(n_positions: int, n_heads: int) -> Arrays:
    """The slopes and biases of ALiBi, on both sides of the diagonal.

    Args:
        n_positions: positions from 0 on.
        n_heads: number of heads.

    Returns:
        ``slopes`` (head), and ``bias`` (head, query, key): −slope·|query − key|.
    """
    return {
        "slopes": _named("head", alibi_slopes(n_heads)),
        "bias": _named("head query key", alibi_bias(n_heads, n_positions, n_positions)),
    }


def learned_encoding(model: Transformer, n_positions: int) -> Arrays:
    """The first rows of a model's learned positions.

    Args:
        model: with learned positions.
        n_positions: positions from 0 on, at most the model's `max_tokens`.

    Returns:
        ``encoding`` (position, d_model); for an encoder–decoder ``encoder.encoding`` and
        ``decoder.encoding``.
    """
    ending = ".embedding.positions.weight"
    tables = {
        name.removesuffix(ending): table[:n_positions]
        for name, table in model.weights().items()
        if name.endswith(ending)
    }
    return {
        "encoding" if len(tables) == 1 else f"{stack}.encoding": _named("position d_model", table)
        for stack, table in tables.items()
    }


def encoding_of(model: Transformer, n_positions: int) -> Arrays:
    """The positional encoding of a model.

    Args:
        model: of any kind.
        n_positions: positions from 0 on.

    Raises:
        ValueError: positions are not encoded, or fewer are learned.
    """
    config = model.config
    match config.positional:
        case "sinusoidal":
            return sinusoidal_encoding(n_positions, config.d_model)
        case "rotary":
            return rotary_encoding(n_positions, config.d_head)
        case "alibi":
            return alibi_encoding(n_positions, config.n_heads)
        case "none":
            raise ValueError("the model encodes no positions")
    if n_positions > config.max_tokens:
        raise ValueError(f"the model has learned {config.max_tokens} positions, not {n_positions}")
    return learned_encoding(model, n_positions)


def _named(axes: str, tensor: Tensor) -> NamedArray:
    return NamedArray(tuple(axes.split()), tensor.detach().float().cpu().numpy())
