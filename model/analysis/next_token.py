"""The most likely next tokens after each token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int

from headlight.model.analysis._distributions import of_following, of_tokens, softmax, top_k
from headlight.model.generation import Sampling, next_token_distribution
from headlight.model.trace import NamedArray, Trace

NEEDS = ("logits",)


def next_token(
    trace: Trace,
    top: int = 20,
    tokens: Sequence[int] = (),
    *,
    following: bool = False,
    sampling: Sampling | None = None,
) -> dict[str, NamedArray]:
    """The `top` most likely next tokens after every token, most likely first.

    Args:
        trace: with the site ``logits`` (query, vocab).
        top: how many tokens; at most vocab_size are returned.
        tokens: ids of further tokens.
        following: whether the probability of the token that does follow is returned too.
        sampling: how a token would be sampled; None: not returned.

    Returns:
        ``ids`` (query, rank), int32, and ``probabilities`` (query, rank), float32 in [0, 1]:
        softmax over the whole vocabulary, so a row sums to 1 or less. With `tokens` also
        ``chosen_ids`` (token), ``chosen_logits``, ``chosen_probabilities`` and ``chosen_ranks``
        (query, token); a rank of 1 is the likeliest. With `following` also ``following``
        (position), float32: of every token but the first, the probability that it had. With
        `sampling` also ``sampled`` (query, rank), float32: the probability of each of ``ids`` of
        being sampled, as `next_token_distribution` computes it.

    Raises:
        KeyError: the trace has no logits.
        ValueError: top is less than 1, or there is no such token.
    """
    logits = trace.tensors["logits"].data
    distribution = softmax(logits)
    ids, probabilities = top_k(distribution, top)
    chosen = of_tokens(logits, distribution, tokens)
    sampled = None if sampling is None else _of_being_sampled(logits, ids, sampling)
    had = of_following(distribution, following_ids(trace)) if following else None
    return {
        "ids": NamedArray(("query", "rank"), ids.astype(np.int32)),
        "probabilities": NamedArray(("query", "rank"), probabilities.astype(np.float32)),
        **{
            name: NamedArray(("query", "token")[2 - array.ndim :], array)
            for name, array in chosen.items()
        },
        **({} if had is None else {"following": NamedArray(("position",), had)}),
        **({} if sampled is None else {"sampled": NamedArray(("query", "rank"), sampled)}),
    }


def _of_being_sampled(
    logits: Float[np.ndarray, "query vocab"], ids: Int[np.ndarray, "query rank"], sampling: Sampling
) -> Float[np.ndarray, "query rank"]:
    rows = [
        next_token_distribution(torch.tensor(row), sampling).numpy()[chosen]
        for row, chosen in zip(logits, ids, strict=True)
    ]
    return np.stack(rows).astype(np.float32)


def following_ids(trace: Trace) -> list[int]:
    """The tokens that follow the positions of the text that is predicted, but the last."""
    tokens = trace.tokens if trace.target_tokens is None else trace.target_tokens
    return [token.id for token in tokens[1:]]
