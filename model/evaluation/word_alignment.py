"""Word alignment: which word of a sentence stands for which word of its translation.

A hand-made gold holds *sure* links, which everybody would draw, and *possible* ones, which a
reader may draw or leave out (idioms, free translation, function words without a partner). Every
sure link is possible too. Och and Ney 2003, section 5, https://aclanthology.org/J03-1002/.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import pre_tokenizers

from headlight.model.training.corpus import CorpusError, read_lines

Link = tuple[int, int]  # an English word and a French one, each counted from 0

ENGLISH_FRENCH_GOLD = Path(__file__).with_name("gold") / "english_french.jsonl"

_PRE_TOKENIZER = pre_tokenizers.ByteLevel(add_prefix_space=False)


@dataclass(frozen=True, kw_only=True)
class GoldPair:
    """A sentence, its translation, and the links between their words that a person drew.

    Raises:
        ValueError: a text is not spelled by its words, a link leaves the words, or a sure link is
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
        self.check_links(self.possible)
        if stray := self.sure - self.possible:
            raise ValueError(f"the sure link {min(stray)} is not among the possible ones")

    def check_links(self, links: Set[Link]) -> None:
        """Refuse links to words that are not there.

        Raises:
            ValueError: a link leaves the words of this pair.
        """
        n_english, n_french = len(self.english_words), len(self.french_words)
        for english, french in sorted(links):
            if not (0 <= english < n_english and 0 <= french < n_french):
                raise ValueError(
                    f"the link ({english}, {french}) leaves the {n_english} English and "
                    f"{n_french} French words of {self.english!r}"
                )


class AlignmentScore(NamedTuple):
    """How well links agree with the gold; each number is in [0, 1], an error rate of 0 is best."""

    error_rate: float
    precision: float
    recall: float


def alignment_error_rate(links: Sequence[Set[Link]], gold: Sequence[GoldPair]) -> AlignmentScore:
    """Count a corpus' links A against its sure links S and its possible links P.

        error rate = 1 − (|A∩S| + |A∩P|) / (|A| + |S|)
        precision  = |A∩P| / |A|
        recall     = |A∩S| / |S|

    Och and Ney 2003, section 5. Every count runs over the whole corpus, so a long
    sentence weighs more than a short one. Where nothing is linked, the precision is 0.

    Args:
        links: for each gold pair, the links to score.
        gold: the pairs, in the same order.

    Raises:
        ValueError: there is not one set of links for each pair, a link leaves the words of its
            pair, or the gold has no sure link.
    """
    if len(links) != len(gold):
        raise ValueError(f"there are {len(links)} sets of links for {len(gold)} gold pairs")
    for drawn, pair in zip(links, gold, strict=True):
        pair.check_links(drawn)
    n_sure = sum(len(pair.sure) for pair in gold)
    if not n_sure:
        raise ValueError("the gold has no sure link, so no recall; add pairs that have some")
    n_links = sum(map(len, links))
    n_right = sum(len(drawn & pair.possible) for drawn, pair in zip(links, gold, strict=True))
    n_found = sum(len(drawn & pair.sure) for drawn, pair in zip(links, gold, strict=True))
    return AlignmentScore(
        error_rate=1 - (n_found + n_right) / (n_links + n_sure),
        precision=n_right / n_links if n_links else 0.0,
        recall=n_found / n_sure,
    )


def split_words(text: str) -> list[str]:
    """The words of a text as a byte-level tokenizer's pieces build them, without spaces.

    ``don't`` is ``don``, ``'t``; ``j'ai`` is ``j``, ``'``, ``ai``. No piece of such a tokenizer
    reaches over the border of two words.
    """
    pieces = (text[start:end] for _, (start, end) in _PRE_TOKENIZER.pre_tokenize_str(text))
    return [word for piece in pieces if (word := piece.strip())]


def word_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where each word stands in a text: its first character, and the one after its last.

    Raises:
        ValueError: the words in their order, with spaces wherever the text has some, are not
            the text.
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
    """Read hand-aligned pairs, a JSON object a line, of one of two kinds.

    This project's own holds ``english french english_words french_words sure possible``. One that
    holds ``en fr sure possible``, the first two being lists of words, has no raw text: its words
    joined by spaces stand for it, and its sure links are taken to be possible.

    Raises:
        CorpusError: the file cannot be read or a line is no aligned pair; the message names the
            line.
    """
    return [
        _read_pair(line, path, number)
        for number, line in enumerate(read_lines(path), start=1)
        if line.strip()
    ]


def _read_pair(line: str, path: Path, number: int) -> GoldPair:
    try:
        record = json.loads(line)
        return _joined_pair(record) if "en" in record else _raw_pair(record)
    except KeyError as error:
        raise CorpusError(f"{path}, line {number} is no aligned pair: it lacks {error}") from error
    except (TypeError, ValueError) as error:
        raise CorpusError(f"{path}, line {number} is no aligned pair: {error}") from error


def _raw_pair(record: dict[str, Any]) -> GoldPair:
    return GoldPair(
        english=record["english"],
        french=record["french"],
        english_words=_words(record["english_words"]),
        french_words=_words(record["french_words"]),
        sure=_links(record["sure"]),
        possible=_links(record["possible"]),
    )


def _joined_pair(record: dict[str, Any]) -> GoldPair:
    english_words, french_words = _words(record["en"]), _words(record["fr"])
    sure = _links(record["sure"])
    return GoldPair(
        english=" ".join(english_words),
        french=" ".join(french_words),
        english_words=english_words,
        french_words=french_words,
        sure=sure,
        possible=sure | _links(record["possible"]),
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
    """The pairs of which neither side has more than so many words."""
    return [
        pair for pair in gold if max(len(pair.english_words), len(pair.french_words)) <= max_words
    ]


def ibm_model_1_links(
    sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair], *, n_iterations: int = 5
) -> list[set[Link]]:
    """Align the gold with IBM model 1, which knows words and not their order.

    Brown et al. 1993, section 4.1, https://aclanthology.org/J93-2003/; trained and decoded by
    nltk. Every French word is linked to its likeliest English word, or to none; one that was never
    learned, to the last.

    Args:
        sentences: pairs of an English and a French text, to learn from; lower-cased.
        gold: the pairs to align; lower-cased. They are not learned from.
        n_iterations: rounds of expectation maximisation.

    Returns:
        The links of each gold pair.

    Raises:
        ImportError: nltk is not installed.
    """
    return _ibm_links("IBMModel1", sentences, gold, n_iterations)


def ibm_model_2_links(
    sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair], *, n_iterations: int = 5
) -> list[set[Link]]:
    """Align the gold with IBM model 2, which knows where in a sentence a word tends to go, too.

    As `ibm_model_1_links`; section 4.2. nltk first trains a model 1 for twice as many rounds.
    Where no sentence pair of the same two lengths was learned from, nltk links next to nothing.
    """
    return _ibm_links("IBMModel2", sentences, gold, n_iterations)


def _ibm_links(
    name: str, sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair], n_iterations: int
) -> list[set[Link]]:
    try:
        from nltk import translate
    except ImportError as error:
        raise ImportError(
            "the IBM models need nltk, which is not installed; pip install headlight[evaluate]"
        ) from error

    def aligned(english: Sequence[str], french: Sequence[str]) -> Any:
        return translate.AlignedSent([w.lower() for w in french], [w.lower() for w in english])

    corpus = [aligned(split_words(english), split_words(french)) for english, french in sentences]
    model = getattr(translate, name)(corpus, n_iterations)
    unseen = [aligned(pair.english_words, pair.french_words) for pair in gold]
    model.align_all(unseen)
    return [
        {(english, french) for french, english in pair.alignment if english is not None}
        for pair in unseen
    ]
