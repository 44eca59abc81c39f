"""The mean attention weight of each head by the distance from query to key."""

from __future__ import annotations

import numpy as np
import torch
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
        n_tokens = attention.weights.shape[-1]
        first = 0 if attention.is_causal else 1 - n_tokens
        distances = np.arange(first, n_tokens).astype(np.int32)
        kept = (means[:, n_tokens - 1 :] if attention.is_causal else means).astype(np.float32)
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
    index = torch.from_numpy(distance_index(*counted.shape).reshape(-1))
    n_distances = 2 * counted.shape[0] - 1  # `len` would be a number that a graph fixes

    def sums(amounts: Float[np.ndarray, "row token token"]) -> Float[np.ndarray, "row distance"]:
        flat = torch.from_numpy((amounts * counted).astype(np.float64)).flatten(1)
        zeros = flat.new_zeros(len(flat), n_distances)
        return zeros.scatter_add(1, index.expand_as(flat), flat).numpy()

    means: Float[np.ndarray, "head distance"] = sums(weights) / np.maximum(sums(counted[None]), 1)
    return means


def distance_index(n_queries: int, n_keys: int) -> Int[np.ndarray, "query key"]:
    """Return the index of each pair's distance, query − key, in the range −(n−1) … n−1."""
    return np.arange(n_queries)[:, None] - np.arange(n_keys) + n_keys - 1
