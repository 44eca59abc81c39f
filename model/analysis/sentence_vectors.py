"""The vector of a text, the similarity of two, and what moves them when it is taken away.

A vector is the sum over tokens of their last hidden states times weights: 1/T for the mean, 1 at
the first token, or 1 in each dimension at the token that has the maximum. So the cosine of two
vectors is a sum over pairs of tokens, one of each text, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from headlight.model.analysis.edited_passes import EditedPasses, Row
from headlight.model.analysis.layers import float_array
from headlight.model.analysis.reasons import Part, parts_of
from headlight.model.description import Pooling
from headlight.model.trace import NamedArray, Trace

HIDDEN = "last_hidden_state"
_LEAST = 1e-12

Hidden = Float[np.ndarray, "token d_model"]
Vector = Float[np.ndarray, " d_model"]


def shares_of(hidden: Hidden, pooling: Pooling) -> Hidden:
    """Return what of each token's hidden state goes into the vector (token, d_model)."""
    hidden = hidden.astype(np.float64)
    weights = np.zeros_like(hidden)
    if pooling.mode == "max":
        weights[hidden.argmax(axis=0), np.arange(hidden.shape[1])] = 1
    elif pooling.mode == "mean":
        weights[:] = 1 / len(hidden)
    else:
        weights[0 if pooling.mode == "cls" else -1] = 1
    shares: Hidden = weights * hidden
    return shares


def vector_of(hidden: Hidden, pooling: Pooling) -> Vector:
    """Return the vector of a text, of length 1 if the folder normalises it."""
    vector: Vector = shares_of(hidden, pooling).sum(axis=0)
    return vector / max(np.linalg.norm(vector), _LEAST) if pooling.is_normalized else vector


def cosine(first: Vector, second: Vector) -> float:
    """Return the cosine of two vectors."""
    length = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / max(length, _LEAST))


def similarity_of_pairs(
    hidden: Hidden, other: Hidden, pooling: Pooling
) -> Float[np.ndarray, "query key"]:
    """Return what each pair of tokens gives to the cosine of two texts; they sum to it."""
    first, second = shares_of(hidden, pooling), shares_of(other, pooling)
    length = np.linalg.norm(first.sum(axis=0)) * np.linalg.norm(second.sum(axis=0))
    pairs: Float[np.ndarray, "query key"] = first @ second.T / max(length, _LEAST)
    return pairs


def measure_without(
    passes: EditedPasses, site: str, take: Callable[[Float[np.ndarray, "token ..."]], Vector]
) -> tuple[list[Part], Float[np.ndarray, "part n"]]:
    """Return the heads and networks, and numbers of the pass without each of them.

    Args:
        passes: over the text of a trace with the contexts of heads and the outputs of networks.
        site: of the model's output.
        take: makes the numbers of the output of one pass.

    Raises:
        TooManyPasses, Cancelled: as `EditedPasses.predict`.
    """
    parts = list(parts_of(passes.trace))

    def each(captured: Mapping[str, Tensor]) -> Float[np.ndarray, "row n"]:
        return np.stack([take(row) for row in captured[site].float().cpu().numpy()])

    return parts, passes.read([[part.edit] for part in parts], [site], each)


def by_part(parts: Sequence[Part], values: Sequence[float]) -> dict[str, NamedArray]:
    """Return a number of each part as ``heads`` (layer, head) and ``networks`` (layer)."""
    n_layers = max(part.layer for part in parts) + 1
    heads = np.zeros((n_layers, max((part.head or 0) for part in parts) + 1))
    networks = np.zeros(n_layers)
    for part, value in zip(parts, values, strict=True):
        if part.head is None:
            networks[part.layer] = value
        else:
            heads[part.layer, part.head] = value
    has_networks = any(part.head is None for part in parts)
    return {
        "heads": float_array(heads, "layer", "head"),
        **({"networks": float_array(networks, "layer")} if has_networks else {}),
    }


def moved_vectors(passes: EditedPasses, pooling: Pooling) -> dict[str, NamedArray]:
    """Return how far a text's vector and hidden states move when each part writes nothing.

    Returns:
        ``heads`` (layer, head) and ``networks`` (layer): the length of the vector's change as a
        share of the vector's; ``hidden_heads``, ``hidden_networks``: of all hidden states together.
    """
    hidden = passes.trace[HIDDEN]
    vector = vector_of(hidden, pooling)
    scale, whole = np.linalg.norm(vector), np.linalg.norm(hidden)

    def take(output: Hidden) -> Vector:
        away = np.linalg.norm(vector_of(output, pooling) - vector)
        return np.array([away / scale, np.linalg.norm(output - hidden) / whole])

    parts, moved = measure_without(passes, HIDDEN, take)
    arrays = by_part(parts, moved[:, 0].tolist())
    return arrays | {
        f"hidden_{name}": each for name, each in by_part(parts, moved[:, 1].tolist()).items()
    }


@dataclass(frozen=True)
class VectorChange:
    """The share of the way from the vector of one text to that of another.

    Args:
        own: the vector of the text.
        other: that of the other one.
        pooling: makes a vector.
        position: the last one that it depends on.
    """

    own: Vector
    other: Vector
    pooling: Pooling
    position: int
    name: ClassVar[str] = "vector"

    def of(self, hidden: Hidden) -> float:
        """Return it of the last hidden states of a pass."""
        way = self.other - self.own
        return float((vector_of(hidden, self.pooling) - self.own) @ way / max(way @ way, _LEAST))

    def in_trace(self, trace: Trace) -> float:
        """Return it of a trace."""
        return self.of(trace[HIDDEN])

    def in_passes(self, passes: EditedPasses, rows: Sequence[Row]) -> Float[np.ndarray, " row"]:
        """Return it of passes with edits."""

        def each(captured: Mapping[str, Tensor]) -> Float[np.ndarray, " row"]:
            return np.array([self.of(row) for row in captured[HIDDEN].float().cpu().numpy()])

        return passes.read(rows, [HIDDEN], each)


def similarity_without(
    passes: EditedPasses, other: EditedPasses, pooling: Pooling
) -> dict[str, NamedArray]:
    """Return the similarity of two texts without each part, taken away in both, by `by_part`."""

    def take(hidden: Hidden) -> Vector:
        return vector_of(hidden, pooling)

    parts, first = measure_without(passes, HIDDEN, take)
    _, second = measure_without(other, HIDDEN, take)
    return by_part(parts, [cosine(*pair) for pair in zip(first, second, strict=True)])
