"""Word alignment of a translation and its source, from cross-attention weights.

Garg et al. 2019, https://arxiv.org/abs/1909.02074; Chen et al. 2020,
https://arxiv.org/abs/2004.14837.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from headlight.model.analysis.layers import Attention, attentions_of
from headlight.model.distributions import normalise
from headlight.model.trace import NamedArray, Token, Trace


class WordLinks(NamedTuple):
    """The alignment of two texts; row w and column w are the words numbered w.

    ``weights``: the attention of each target word to each source word; a row sums to 1, or to 0 if
    the word attends to special tokens only. ``links``: True if the two words are linked.
    """

    weights: Float[np.ndarray, "target_word source_word"]
    links: Bool[np.ndarray, "target_word source_word"]


def alignment(
    trace: Trace,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    shift: int = 0,
    threshold: float | None = None,
) -> dict[str, NamedArray]:
    """Link target words to source words by cross-attention averaged over layers and heads.

    Args:
        trace: with cross-attention weights and target tokens.
        layers: the layers to average; None: all that the trace holds.
        heads: the heads to average, numbered as in the model; None: all that the trace holds.
        shift: as in `word_links`.
        threshold: as in `word_links`.

    Returns:
        ``weights`` (target_word, source_word), float32, and ``links``, of the same axes, int32:
        1 if the two words are linked, else 0.

    Raises:
        KeyError: the trace has no cross-attention weights.
        ValueError: the trace has no target or lacks a layer or head; or as `word_links`.
    """
    attentions = attentions_of(trace, "cross_attention")
    target_tokens, tokens = attentions[0].tokens(trace)
    chosen = [
        attentions[n]
        for n in _indices(layers, [attention.layer for attention in attentions], "layer")
    ]
    weights = np.mean([_mean_head(attention, trace.heads, heads) for attention in chosen], axis=0)
    aligned = word_links(weights, tokens, target_tokens, shift, threshold)
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
    threshold: float | None = None,
) -> WordLinks:
    """Convert token-to-token weights to word-to-word weights, and link words.

    1. Drop the columns of special tokens, add up the columns of a word's tokens, average its rows
       (Clark et al. 2019, https://arxiv.org/abs/1906.04341, section 4.1), and divide every row by
       its sum.
    2. Link each target word to the source word with the greatest weight, the first of equals. With
       a threshold, link it to every source word whose weight exceeds the threshold as a share both
       of the target word's row and of the source word's column (Dou and Neubig 2021,
       https://arxiv.org/abs/2101.08231, with shares in place of a second softmax). A threshold may
       leave words without a link.

    Args:
        weights: of one head, or a mean over heads.
        tokens: the source's, one per key.
        target_tokens: the decoder's, one per query.
        shift: 0 aligns target token t by row t, which has read it; 1 by row t − 1, which predicts
            it. Chen et al. find 0 better.
        threshold: in [0, 1); None: link the greatest weight.

    Raises:
        ValueError: the numbers of tokens differ from the weights' shape, shift or threshold is out
            of range, a text has no words, or no row predicts the first token of the target.
    """
    _check(weights, tokens, target_tokens, shift, threshold)
    rows = weights.astype(np.float64)
    if shift:
        rows = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    source, target = _membership(tokens), _membership(target_tokens)
    merged = target @ rows @ source.T / np.maximum(target.sum(axis=1, keepdims=True), 1)
    merged = normalise(merged)
    return WordLinks(merged, _link(merged, threshold))


def _link(
    weights: Float[np.ndarray, "target_word source_word"], threshold: float | None
) -> Bool[np.ndarray, "target_word source_word"]:
    if threshold is not None:
        return (weights > threshold) & (normalise(weights, axis=0) > threshold)
    links = np.zeros(weights.shape, dtype=bool)
    links[np.arange(len(weights)), weights.argmax(axis=1)] = True
    return links & (weights > 0)


def _membership(tokens: Sequence[Token]) -> Float[np.ndarray, "word token"]:
    """Return 1 if the token is part of the word, else 0; special tokens are part of none."""
    words = [None if token.is_special else token.word for token in tokens]
    n_words = 1 + max(word for word in words if word is not None)
    return np.array([[float(word == row) for word in words] for row in range(n_words)])


def _check(
    weights: Float[np.ndarray, "query key"],
    tokens: Sequence[Token],
    target_tokens: Sequence[Token],
    shift: int,
    threshold: float | None,
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
    if threshold is not None and not 0 <= threshold < 1:
        raise ValueError(f"threshold ({threshold}) must lie in [0, 1)")
    for side, side_tokens in (("source", tokens), ("target", target_tokens)):
        if all(token.is_special or token.word is None for token in side_tokens):
            raise ValueError(f"the {side} has no words to align")
    if shift and not target_tokens[0].is_special:
        raise ValueError(f"no row predicts the first token {target_tokens[0].text!r}; use shift 0")


def _mean_head(
    attention: Attention, held: Sequence[int] | None, heads: Sequence[int] | None
) -> Float[np.ndarray, "query key"]:
    known = range(len(attention.weights)) if held is None else held
    mean: Float[np.ndarray, "query key"] = attention.weights[_indices(heads, known, "head")].mean(0)
    return mean


def _indices(wanted: Sequence[int] | None, held: Sequence[int], noun: str) -> list[int]:
    """Return the index of each wanted layer or head among those that the trace holds."""
    chosen = held if wanted is None else wanted
    unknown = [number for number in chosen if number not in held]
    if unknown or not chosen:
        missing = f"lacks {noun} {unknown[0]}" if unknown else f"needs at least one {noun}"
        raise ValueError(f"alignment: the trace {missing}; it holds {noun}s {list(held)}")
    return [list(held).index(number) for number in chosen]
