"""The answer that a model marks in a text, and what moves its logits or a score."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headlight.model.analysis.edited_passes import EditedPasses
from headlight.model.analysis.layers import float_array
from headlight.model.analysis.sentence_vectors import by_part, measure_without
from headlight.model.trace import SEGMENTS, NamedArray, Trace

LONGEST = 30
"""The most tokens of an answer."""


def softmax(logits: Float[np.ndarray, "query end"]) -> Float[np.ndarray, "query end"]:
    """Return the probabilities of the tokens, of each column."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=0))
    return np.asarray(exponentials / exponentials.sum(axis=0))


def answer_span(trace: Trace) -> tuple[int, int]:
    """Return the first and the last position of the likeliest answer.

    It lies in the second text of a pair, the first of which is the question, or else anywhere but
    in special tokens, and has at most `LONGEST` tokens.

    Args:
        trace: with the site ``answer_logits`` (query, end).
    """
    logits = trace["answer_logits"].astype(np.float64)
    sides = [token.role for token in trace.tokens]
    wanted = SEGMENTS[1] if SEGMENTS[1] in sides else None
    is_able = np.array(
        [not token.is_special and wanted in (None, token.role) for token in trace.tokens]
    )
    if not is_able.any():
        is_able[:] = True
    at = np.arange(len(logits))
    apart = at[None] - at[:, None]
    able = is_able[:, None] & is_able[None] & (apart >= 0) & (apart < LONGEST)
    sums = np.where(able, logits[:, :1] + logits[None, :, 1], -np.inf)
    start, end = np.unravel_index(int(sums.argmax()), sums.shape)
    return int(start), int(end)


def moved_scores(passes: EditedPasses) -> dict[str, NamedArray]:
    """Return what the score, or the sum of an answer's two logits, loses without each part.

    Returns:
        ``before`` (one number), and ``heads`` (layer, head) and ``networks`` (layer).
    """
    trace = passes.trace
    if "reward" in trace:
        site = "reward"

        def take(output: Float[np.ndarray, "query ..."]) -> Float[np.ndarray, " one"]:
            return np.asarray(output[-1:], np.float64)

    else:
        site, (start, end) = "answer_logits", answer_span(trace)

        def take(output: Float[np.ndarray, "query ..."]) -> Float[np.ndarray, " one"]:
            return np.asarray([output[start, 0] + output[end, 1]], np.float64)

    (before,) = take(trace[site])
    parts, after = measure_without(passes, site, take)
    return {
        "before": float_array(np.array([before]), "one"),
        **by_part(parts, (before - after[:, 0]).tolist()),
    }
