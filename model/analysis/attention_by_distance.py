"""The mean attention weight of each head by the distance from query to key."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from headlight.model.analysis.layers import attentions_of
from headlight.model.trace import NamedArray, Trace


def attention_by_distance(trace: Trace) -> dict[str, NamedArray]:
    """Return the mean weight at every distance query − key, over the queries that have such a key.

    Args:
        trace: with self-attention weights.

    Returns:
        By attention, ``decoder.layers.0.self_attention``: (head, distance), float32 in [0, 1].
        By stack, ``decoder.distances``: the values of the distance axis, int32. 0 … n−1 tokens back
        in a decoder, which is causal; −(n−1) … n−1 in an encoder, negative for later keys.

    Raises:
        KeyError: the trace has no self-attention weights.
    """
    arrays: dict[str, NamedArray] = {}
    for attention in attentions_of(trace, "self_attention"):
        means = mean_by_distance(attention.weights, attention.visible)
        n_tokens = means.shape[1] // 2 + 1
        first = 0 if attention.is_causal else 1 - n_tokens
        distances = np.arange(first, n_tokens, dtype=np.int32)
        kept = means[:, distances + n_tokens - 1].astype(np.float32)
        arrays[attention.path] = NamedArray(("head", "distance"), kept)
        arrays[f"{attention.stack}.distances"] = NamedArray(("distance",), distances)
    return arrays


def mean_by_distance(
    weights: Float[np.ndarray, "head token token"], counted: Bool[np.ndarray, "token token"]
) -> Float[np.ndarray, "head distance"]:
    """Return the mean of the counted weights at every distance −(n−1) … n−1; 0 if none is counted.

    Args:
        weights: of one or more heads.
        counted: which (query, key) pairs enter the mean.
    """
    distances = distance_index(len(counted))[counted]
    n_distances = 2 * len(counted) - 1
    counts = np.bincount(distances, minlength=n_distances)
    sums = [np.bincount(distances, head[counted], minlength=n_distances) for head in weights]
    return np.stack(sums) / np.maximum(counts, 1)


def distance_index(n_tokens: int) -> Int[np.ndarray, "token token"]:
    """Return the index of each pair's distance, query − key, in the range −(n−1) … n−1."""
    places = np.arange(n_tokens)
    return places[:, None] - places + n_tokens - 1
