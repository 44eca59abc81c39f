"""The most likely next tokens after each token."""

from __future__ import annotations

import numpy as np

from headlight.model.analysis._distributions import softmax, top_k
from headlight.model.trace import NamedArray, Trace

NEEDS = ("logits",)


def next_token(trace: Trace, top: int = 20) -> dict[str, NamedArray]:
    """The `top` most likely next tokens after every token, most likely first.

    Args:
        trace: with the site ``logits`` (query, vocab).
        top: how many tokens; at most vocab_size are returned.

    Returns:
        ``ids`` (query, rank), int32, and ``probabilities`` (query, rank), float32 in [0, 1]:
        softmax over the whole vocabulary, so a row sums to 1 or less.

    Raises:
        KeyError: the trace has no logits.
        ValueError: top is less than 1.
    """
    ids, probabilities = top_k(softmax(trace.tensors["logits"].data), top)
    return {
        "ids": NamedArray(("query", "rank"), ids.astype(np.int32)),
        "probabilities": NamedArray(("query", "rank"), probabilities.astype(np.float32)),
    }
