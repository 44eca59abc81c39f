"""How well a translator's cross-attention aligns words: head by head, and layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headlight.model import tracing
from headlight.model.analysis.alignment import word_links
from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.word_alignment import (
    AlignmentScore,
    GoldPair,
    Link,
    alignment_error_rate,
    word_spans,
)
from headlight.model.trace import Token

SITES = "decoder.layers.*.cross_attention.weights"
Mix = Callable[[Float[np.ndarray, "layer head query key"]], Float[np.ndarray, "query key"]]


@dataclass(frozen=True)
class Aligner:
    """Where a word alignment is read off, and how good it is there.

    ``head`` is None for the mean of a layer's heads. ``shift`` 0 takes the row of the target token
    that has been read, 1 the row that predicts it.
    """

    layer: int
    head: int | None
    shift: int
    score: AlignmentScore


@dataclass(frozen=True)
class _Read:
    pair: GoldPair
    tokens: tuple[Token, ...]
    target_tokens: tuple[Token, ...]
    weights: Float[np.ndarray, "layer head query key"]


def best_head(checkpoint: Checkpoint, gold: Sequence[GoldPair]) -> Aligner:
    """The single head with the lowest error rate on the gold, which is read with its own target."""
    reads = _read_all(checkpoint, gold)
    n_layers, n_heads = reads[0].weights.shape[:2]
    found = [
        aligner(checkpoint, gold, layer=layer, head=head, shift=shift, reads=reads)
        for layer in range(n_layers)
        for head in range(n_heads)
        for shift in (0, 1)
    ]
    return min(found, key=lambda one: one.score.error_rate)


def best_layer(checkpoint: Checkpoint, gold: Sequence[GoldPair]) -> Aligner:
    """The layer whose mean over its heads has the lowest error rate on the gold."""
    reads = _read_all(checkpoint, gold)
    found = [
        aligner(checkpoint, gold, layer=layer, head=None, shift=shift, reads=reads)
        for layer in range(len(reads[0].weights))
        for shift in (0, 1)
    ]
    return min(found, key=lambda one: one.score.error_rate)


def aligner(
    checkpoint: Checkpoint,
    gold: Sequence[GoldPair],
    *,
    layer: int,
    head: int | None,
    shift: int,
    reads: Sequence[_Read] | None = None,
) -> Aligner:
    """Score one head, or the mean of a layer, on the gold.

    Args:
        checkpoint: an encoder–decoder.
        gold: hand-aligned pairs.
        layer: of the decoder.
        head: a head; None: the mean of all.
        shift: which row stands for a target token.
        reads: the passes, where they have been made already.
    """

    def mix(weights: Float[np.ndarray, "layer head query key"]) -> Float[np.ndarray, "query key"]:
        chosen: Float[np.ndarray, "query key"] = (
            weights[layer].mean(axis=0) if head is None else weights[layer, head]
        )
        return chosen

    reads = _read_all(checkpoint, gold) if reads is None else reads
    links = [_links(read, mix, shift) for read in reads]
    return Aligner(layer, head, shift, alignment_error_rate(links, gold))


def _read_all(checkpoint: Checkpoint, gold: Sequence[GoldPair]) -> list[_Read]:
    reads = []
    for pair in gold:
        trace = tracing.trace(checkpoint, pair.english, pair.french, capture=[SITES])
        assert trace.target_tokens is not None
        weights = np.stack([array.data for array in trace.tensors.values()])
        reads.append(_Read(pair, trace.tokens, trace.target_tokens, weights))
    return reads


def _links(read: _Read, mix: Mix, shift: int) -> set[Link]:
    """The links between the gold's words, whatever the tokenizer takes for words."""
    found = word_links(mix(read.weights), read.tokens, read.target_tokens, shift).links
    english = _places(read.tokens, word_spans(read.pair.english, read.pair.english_words))
    french = _places(read.target_tokens, word_spans(read.pair.french, read.pair.french_words))
    return {(english[key], french[query]) for query, key in zip(*np.nonzero(found), strict=True)}


def _places(tokens: Sequence[Token], spans: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Which word of the gold each word of the tokenizer lies in: that of its last character.

    Spaces after the last word count as part of it.
    """
    last = len(spans) - 1
    return {
        token.word: next((n for n, (_, end) in enumerate(spans) if token.end <= end), last)
        for token in tokens
        if token.word is not None and not token.is_special
    }
