"""The most likely next tokens after each token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headlight.model.analysis._distributions import of_tokens, softmax, top_k
from headlight.model.trace import NamedArray, Trace

NEEDS = ("logits",)


def next_token(trace: Trace, top: int = 20, tokens: Sequence[int] = ()) -> dict[str, NamedArray]:
    """The `top` most likely next tokens after every token, most likely first.

    Args:
        trace: with the site ``logits`` (query, vocab).
        top: how many tokens; at most vocab_size are returned.
        tokens: ids of further tokens.

    Returns:
        ``ids`` (query, rank), int32, and ``probabilities`` (query, rank), float32 in [0, 1]:
        softmax over the whole vocabulary, so a row sums to 1 or less. With `tokens` also
        ``chosen_ids`` (token), ``chosen_logits``, ``chosen_probabilities`` and ``chosen_ranks``
        (query, token); a rank of 1 is the likeliest.

    Raises:
        KeyError: the trace has no logits.
        ValueError: top is less than 1, or there is no such token.
    """
    logits = trace.tensors["logits"].data
    distribution = softmax(logits)
    ids, probabilities = top_k(distribution, top)
    chosen = of_tokens(logits, distribution, tokens)
    return {
        "ids": NamedArray(("query", "rank"), ids.astype(np.int32)),
        "probabilities": NamedArray(("query", "rank"), probabilities.astype(np.float32)),
        **{
            name: NamedArray(("query", "token")[2 - array.ndim :], array)
            for name, array in chosen.items()
        },
    }
