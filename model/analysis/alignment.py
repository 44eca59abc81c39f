"""Word alignment of a translation and its source, from cross-attention weights.

Garg et al. 2019, https://arxiv.org/abs/1909.02074; Chen et al. 2020,
https://arxiv.org/abs/2004.14837.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from headlight.model.analysis.layers import attentions_of
from headlight.model.distributions import normalise
from headlight.model.trace import NamedArray, Token, Trace

Membership: TypeAlias = Float[np.ndarray, "word token"]


class WordLinks(NamedTuple):
    """The alignment of two texts; row w and column w are the words numbered w.

    ``weights``: the attention of each target word to each source word; a row sums to 1, or to 0 if
    the word attends to special tokens only. ``links``: True if the two words are linked.
    """

    weights: Float[np.ndarray, "target_word source_word"]
    links: Bool[np.ndarray, "target_word source_word"]


def alignment(
    trace: Trace,
    aligner: Mapping[str, int] | None = None,
    words: tuple[Membership, Membership] | None = None,
) -> dict[str, NamedArray]:
    """Link target words to source words by one head of cross-attention, or by the mean of all.

    Args:
        trace: with cross-attention weights and target tokens.
        aligner: the ``layer`` and ``head``, numbered as in the model, and ``shift`` as in
            `word_links`; empty or None: the mean of all that the trace holds.
        words: the `membership` of source and target; None: of the trace's tokens.

    Returns:
        ``weights`` (target_word, source_word), float32, and ``links``, of the same axes, int32:
        1 if the two words are linked, else 0.

    Raises:
        KeyError: the trace has no cross-attention weights.
        ValueError: the trace has no target or lacks the layer or head; or as `word_links`.
    """
    attentions = attentions_of(trace, "cross_attention")
    target_tokens, tokens = ((), ()) if words else attentions[0].tokens(trace)
    maps = {
        (attention.layer, head): weights
        for attention in attentions
        for head, weights in zip(trace.heads or count(), attention.weights, strict=False)
    }
    if aligner:
        place = aligner["layer"], aligner["head"]
        if place not in maps:
            raise ValueError(f"alignment: the trace lacks layer {place[0]}, head {place[1]}")
        maps = {place: maps[place]}
    weights, shift = np.stack(list(maps.values())).mean(axis=0), (aligner or {}).get("shift", 0)
    aligned = (
        link_words(weights, *words, shift)
        if words
        else word_links(weights, tokens, target_tokens, shift)
    )
    axes = ("target_word", "source_word")
    return {
        "weights": NamedArray(axes, aligned.weights.astype(np.float32)),
        "links": NamedArray(axes, aligned.links.astype(np.int32)),
    }


def word_links(
    weights: Float[np.ndarray, "query key"],
    tokens: Sequence[Token],
    target_tokens: Sequence[Token],
    shift: int = 0,
) -> WordLinks:
    """Convert token-to-token weights to word-to-word weights, and link words.

    1. Drop the columns of special tokens, add up the columns of a word's tokens, average its rows
       (Clark et al. 2019, https://arxiv.org/abs/1906.04341, section 4.1), and divide every row by
       its sum.
    2. Link each target word to the source word with the greatest weight, the first of equals.

    Args:
        weights: of one head, or a mean over heads.
        tokens: the source's, one per key.
        target_tokens: the decoder's, one per query.
        shift: 0 aligns target token t by row t, which has read it; 1 by row t − 1, which predicts
            it. Chen et al. find 0 better.

    Raises:
        ValueError: the numbers of tokens differ from the weights' shape, shift is out of range, a
            text has no words, or no row predicts the first token of the target.
    """
    _check(weights, tokens, target_tokens, shift)
    return link_words(weights, membership(tokens), membership(target_tokens), shift)


def link_words(
    weights: Float[np.ndarray, "query key"], source: Membership, target: Membership, shift: int = 0
) -> WordLinks:
    """Return the links of `word_links` from the `membership` of both texts."""
    rows = weights.astype(np.float64)
    if shift:
        rows = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    merged = target @ rows @ source.T / np.maximum(target.sum(axis=1, keepdims=True), 1)
    merged = normalise(merged)
    links = np.arange(merged.shape[1]) == merged.argmax(axis=1)[:, None]
    return WordLinks(merged, links & (merged > 0))


def membership(tokens: Sequence[Token]) -> Membership:
    """Return 1 if the token is part of the word, else 0; special tokens are part of none."""
    words = [None if token.is_special else token.word for token in tokens]
    n_words = 1 + max(word for word in words if word is not None)
    return np.array([[float(word == row) for word in words] for row in range(n_words)])


def _check(
    weights: Float[np.ndarray, "query key"],
    tokens: Sequence[Token],
    target_tokens: Sequence[Token],
    shift: int,
) -> None:
    if weights.shape != (len(target_tokens), len(tokens)):
        raise ValueError(
            f"weights of shape {weights.shape} do not match {len(target_tokens)} target and "
            f"{len(tokens)} source tokens"
        )
    if shift not in (0, 1):
        raise ValueError(
            f"shift ({shift}) must be 0 (the row that reads a token) or 1 (the row before it)"
        )
    for side, side_tokens in (("source", tokens), ("target", target_tokens)):
        if all(token.is_special or token.word is None for token in side_tokens):
            raise ValueError(f"the {side} has no words to align")
    if shift and not target_tokens[0].is_special:
        raise ValueError(f"no row predicts the first token {target_tokens[0].text!r}; use shift 0")
