"""What the model expects after each token: the most likely continuations."""

from __future__ import annotations

import numpy as np

from model.trace import NamedArray, Trace

NEEDS = ("logits",)


def next_token(trace: Trace, top: int = 20) -> dict[str, NamedArray]:
    """The `top` most likely next tokens after every token, most likely first.

    Args:
        trace: with the site ``logits`` (query, vocab).
        top: how many, at most vocab_size.

    Returns:
        ``ids`` (query, rank), int32, and ``probabilities`` (query, rank), float32 in [0, 1]:
        softmax over the whole vocabulary, so a row sums to 1 or less.

    Raises:
        KeyError: the trace has no logits.
    """
    logits = trace.tensors["logits"].data.astype(np.float64)
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities = shifted / shifted.sum(axis=-1, keepdims=True)
    top = min(top, logits.shape[-1])
    best = np.argpartition(-probabilities, top - 1, axis=-1)[:, :top]
    order = np.argsort(-np.take_along_axis(probabilities, best, axis=-1), axis=-1, kind="stable")
    ids = np.take_along_axis(best, order, axis=-1)
    return {
        "ids": NamedArray(("query", "rank"), ids.astype(np.int32)),
        "probabilities": NamedArray(
            ("query", "rank"), np.take_along_axis(probabilities, ids, axis=-1).astype(np.float32)
        ),
    }
