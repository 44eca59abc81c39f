"""Word alignment: the gold standard, the error rate, and the alignment of cross-attention.

A hand-made gold standard has *sure* links, which every annotator draws, and *possible* ones, which
an annotator may draw or leave out (idioms, free translation, function words without a partner).
Every sure link is possible too. Och and Ney 2003, section 5, https://aclanthology.org/J03-1002/.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from headlight.model import tracing
from headlight.model.analysis.alignment import word_links
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import CorpusError, SentencePair, read_lines
from headlight.model.trace import Token

Link = tuple[int, int]  # the indices of an English word and a French one
SITES = "decoder.layers.*.cross_attention.weights"


@dataclass(frozen=True, kw_only=True)
class GoldPair:
    """A sentence, its translation, and the links that an annotator drew between their words.

    Raises:
        ValueError: the words do not spell their text, a link is out of range, or a sure link is
            not possible.
    """

    english: str
    french: str
    english_words: tuple[str, ...]
    french_words: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]

    def __post_init__(self) -> None:
        word_spans(self.english, self.english_words)
        word_spans(self.french, self.french_words)
        n_english, n_french = len(self.english_words), len(self.french_words)
        for english, french in sorted(self.possible):
            if not (0 <= english < n_english and 0 <= french < n_french):
                raise ValueError(
                    f"the link ({english}, {french}) is out of range: {self.english!r} has "
                    f"{n_english} English and {n_french} French words"
                )
        if stray := self.sure - self.possible:
            raise ValueError(f"the sure link {min(stray)} is not among the possible ones")

    @property
    def sentences(self) -> SentencePair:
        """The sentence and its translation, without the links."""
        return SentencePair(self.english, self.french)


class AlignmentScore(NamedTuple):
    """The agreement of links with the gold standard, each number in [0, 1]."""

    error_rate: float
    precision: float
    recall: float


def alignment_error_rate(links: Sequence[Set[Link]], gold: Sequence[GoldPair]) -> AlignmentScore:
    """Score the links A of a corpus against its sure links S and its possible links P.

        error rate = 1 − (|A∩S| + |A∩P|) / (|A| + |S|)
        precision  = |A∩P| / |A|
        recall     = |A∩S| / |S|

    Och and Ney 2003, section 5. The counts run over the whole corpus, so a long sentence weighs
    more than a short one. Without any link the precision is 0.

    Args:
        links: for each gold pair, the links to score.
        gold: the pairs, in the same order.

    Raises:
        ValueError: there is not one set of links for each pair, or the gold has no sure link.
    """
    n_sure = sum(len(pair.sure) for pair in gold)
    if not n_sure:
        raise ValueError("the gold has no sure link, so recall is undefined; add some")
    n_links = sum(map(len, links))
    n_right = sum(len(drawn & pair.possible) for drawn, pair in zip(links, gold, strict=True))
    n_found = sum(len(drawn & pair.sure) for drawn, pair in zip(links, gold, strict=True))
    return AlignmentScore(
        error_rate=1 - (n_found + n_right) / (n_links + n_sure),
        precision=n_right / n_links if n_links else 0.0,
        recall=n_found / n_sure,
    )


def word_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the span of each word in a text: its first character, and the one after its last.

    Raises:
        ValueError: the words, with the text's spaces between them, do not spell the text.
    """
    spans = []
    end = 0
    for word in words:
        start = end
        while text[start : start + 1].isspace():
            start += 1
        end = start + len(word)
        if not word or text[start:end] != word:
            raise ValueError(f"the word {word!r} is not what comes next in {text!r}")
        spans.append((start, end))
    if rest := text[end:].strip():
        raise ValueError(f"no word spells the end {rest!r} of {text!r}")
    return spans


def read_gold(path: Path) -> list[GoldPair]:
    """Read hand-aligned pairs, a JSON object a line, of one of two formats.

    This project's own has the members ``english french english_words french_words sure possible``.
    One with ``en fr sure possible``, the first two lists of words, has no raw text: the words are
    joined by spaces, and its sure links count as possible.

    Raises:
        CorpusError: the file cannot be read or a line is not an aligned pair.
    """
    return [
        _read_pair(line, path, number)
        for number, line in enumerate(read_lines(path), start=1)
        if line.strip()
    ]


def _read_pair(line: str, path: Path, number: int) -> GoldPair:
    try:
        return _pair_of(json.loads(line))
    except KeyError as error:
        raise CorpusError(
            f"{path}, line {number} is not an aligned pair: it lacks {error}"
        ) from error
    except (TypeError, ValueError) as error:
        raise CorpusError(f"{path}, line {number} is not an aligned pair: {error}") from error


def _pair_of(record: dict[str, Any]) -> GoldPair:
    is_joined = "en" in record
    names = ("en", "fr") if is_joined else ("english_words", "french_words")
    english_words, french_words = (_words(record[name]) for name in names)
    sure, possible = _links(record["sure"]), _links(record["possible"])
    return GoldPair(
        english=" ".join(english_words) if is_joined else record["english"],
        french=" ".join(french_words) if is_joined else record["french"],
        english_words=english_words,
        french_words=french_words,
        sure=sure,
        possible=sure | possible if is_joined else possible,
    )


def _words(value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and value and all(isinstance(word, str) for word in value)):
        raise TypeError(f"words must be a list of texts, not {value!r}")
    return tuple(value)


def _links(value: Any) -> frozenset[Link]:
    if not (isinstance(value, list) and all(map(_is_link, value))):
        raise TypeError(f"links must be a list of pairs of whole numbers, not {value!r}")
    return frozenset((english, french) for english, french in value)


def _is_link(value: Any) -> bool:
    return isinstance(value, list) and [type(place) for place in value] == [int, int]


def short_pairs(gold: Sequence[GoldPair], max_words: int) -> list[GoldPair]:
    """Select the pairs with at most `max_words` words on either side."""
    return [
        pair for pair in gold if max(len(pair.english_words), len(pair.french_words)) <= max_words
    ]


# --- cross-attention ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aligner:
    """A head, or the mean of a layer, as an aligner, with its score.

    ``head`` is None for the mean of a layer's heads. With ``shift`` 0 a target token is aligned by
    its own row of the weights, with 1 by the row before, which predicts it.
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


def best_aligners(checkpoint: Checkpoint, gold: Sequence[GoldPair]) -> tuple[Aligner, Aligner]:
    """Find the head, and the mean of a layer's heads, with the lowest error rate on the gold.

    The decoder reads the gold's own targets.
    """
    reads = _read_all(checkpoint, gold)
    n_layers, n_heads = reads[0].weights.shape[:2]

    def best(heads: Sequence[int | None]) -> Aligner:
        places = product(range(n_layers), heads, (0, 1))
        aligners = [
            aligner(checkpoint, gold, layer=layer, head=head, shift=shift, reads=reads)
            for layer, head, shift in places
        ]
        return min(aligners, key=lambda candidate: candidate.score.error_rate)

    return best(range(n_heads)), best([None])


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
        head: a head; None for the mean of all.
        shift: as in `Aligner`.
        reads: the forward passes, if they have been made.
    """
    reads = _read_all(checkpoint, gold) if reads is None else reads
    chosen = slice(None) if head is None else slice(head, head + 1)
    links = [
        _links_of(reading, reading.weights[layer, chosen].mean(axis=0), shift) for reading in reads
    ]
    return Aligner(layer, head, shift, alignment_error_rate(links, gold))


def _read_all(checkpoint: Checkpoint, gold: Sequence[GoldPair]) -> list[_Read]:
    reads = []
    for pair in gold:
        trace = tracing.trace(checkpoint, pair.english, pair.french, capture=[SITES])
        assert trace.target_tokens is not None
        weights = np.stack([array.data for array in trace.tensors.values()])
        reads.append(_Read(pair, trace.tokens, trace.target_tokens, weights))
    return reads


def _links_of(reading: _Read, weights: Float[np.ndarray, "query key"], shift: int) -> set[Link]:
    """Translate the links between the tokenizer's words into links between the gold's words."""
    is_linked = word_links(weights, reading.tokens, reading.target_tokens, shift).links
    english = _places(reading.tokens, word_spans(reading.pair.english, reading.pair.english_words))
    french = _places(
        reading.target_tokens, word_spans(reading.pair.french, reading.pair.french_words)
    )
    return {
        (english[key], french[query]) for query, key in zip(*np.nonzero(is_linked), strict=True)
    }


def _places(tokens: Sequence[Token], spans: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Map each word of the tokenizer to the word of the gold that holds its last character.

    Spaces after the last word count as part of it.
    """
    last = len(spans) - 1
    return {
        token.word: next((n for n, (_, end) in enumerate(spans) if token.end <= end), last)
        for token in tokens
        if token.word is not None and not token.is_special
    }
