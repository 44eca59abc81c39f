"""Features of a text: counts of its words, sentences, letters and repeats.

They are those by which Gopher's corpus was filtered, and close kin (Rae et al. 2021,
https://arxiv.org/abs/2112.11446, appendix A.1.1). Every feature of every text is finite.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)")
_PUNCTUATION, _DIGIT = re.compile(r"[^\w\s]|_"), re.compile(r"\d")
_VOWELS = re.compile(r"[aeiouy]+")
# UTF-8 that was read as Windows-1252 or Latin-1: a lead byte, then bytes from 0x80 to 0xBF.
_HIGH = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_MISDECODED = re.compile(f"[\u00c2-\u00f4][{_HIGH}]|\ufffd")
_DOUBLED_ACCENT = re.compile(r"[\u0300-\u036f´`¨]{2}|([À-ɏ])\1")
_DOUBLED_QUOTE = re.compile(r"\"\"|''|``|““|””|„„|«\s?«|»\s?»")
_HTML = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>|&(?:[A-Za-z]{2,8}|#\d{1,5});")
_JOINED = re.compile(r"[,;:.!?][\"'”’]?[A-Za-z]")
_LONG = 13  # letters of a word that joined words soon have
_LONG_JOINED = 30  # letters of a word that is looked through for two
_OPENING = "\"'“‘([ \n\t-"
_CLOSING = "\"'”’)] \n\t"
_WINDOW = 50  # words over which the type–token ratio is averaged
_RUN = 5  # words of a run that counts as repeated
_MOST_CHARACTERS = 100_000  # read of a document


class Text:
    """A text with the counts that the features are made of.

    Args:
        text: of which the first 100,000 characters are read.
    """

    def __init__(self, text: str) -> None:
        self.text = text[:_MOST_CHARACTERS]
        self.words = _WORD.findall(self.text)
        self.lower = [word.lower() for word in self.words]

    @cached_property
    def sentences(self) -> list[str]:
        """The parts of the text between ends of sentences; blank ones are left out."""
        parts = (part.strip(_OPENING) for part in _SENTENCE_END.split(self.text))
        return [part for part in parts if part]

    @cached_property
    def n_syllables(self) -> int:
        """The groups of vowels, at least one a word; a final e is silent after another group."""
        return sum(_syllables(word) for word in self.lower)

    def share(self, count: float) -> float:
        """Return a count as a share of all characters; 0 of an empty text."""
        return count / max(1, len(self.text))


def _syllables(word: str) -> int:
    count = len(_VOWELS.findall(word))
    is_silent = word.endswith("e") and not word.endswith(("le", "ee"))
    return max(1, count - is_silent)


def _type_token_ratio(text: Text) -> float:
    """Return the mean share of different words in a window of 50; it does not fall with the length.

    Covington and McFall 2010, https://doi.org/10.1080/09296171003643098.
    """
    words = text.lower
    if len(words) <= _WINDOW:
        return len(set(words)) / max(1, len(words))
    counts = Counter(words[:_WINDOW])
    total = len(counts)
    for leaving, coming in zip(words, words[_WINDOW:], strict=False):
        counts[coming] += 1
        counts[leaving] -= 1
        if not counts[leaving]:
            del counts[leaving]
        total += len(counts)
    return total / (_WINDOW * (len(words) - _WINDOW + 1))


def _reading_ease(text: Text) -> float:
    """Return Flesch's reading ease (1948), cut to [−100, 130].

    206.835 − 1.015·words/sentence − 84.6·syllables/word
    """
    if not text.words:
        return 0.0
    n_words = len(text.words)
    ease = 206.835 - 1.015 * n_words / max(1, len(text.sentences))
    return float(np.clip(ease - 84.6 * text.n_syllables / n_words, -100, 130))


def _capital_starts(text: Text) -> float:
    """Return the share of sentences that begin with a capital or a digit."""
    starts = [not sentence[0].islower() for sentence in text.sentences]
    return sum(starts) / max(1, len(starts))


def _inner_capitals(text: Text) -> float:
    """Return the share of words that begin with a capital and are not the first of a sentence."""
    capitals = sum(word[0].isupper() for word in text.words)
    first = sum(not sentence[0].islower() for sentence in text.sentences)
    return float(max(0, capitals - first) / max(1, len(text.words)))


def _repeated_runs(text: Text) -> float:
    """Return the share of runs of five words that occurred before in the text."""
    words = text.lower
    n_runs = len(words) - _RUN + 1
    if n_runs < 1:
        return 0.0
    return 1 - len({tuple(words[start : start + _RUN]) for start in range(n_runs)}) / n_runs


def _repeated_lines(text: Text) -> float:
    """Return the share of lines that occurred before in the text; blank lines do not count."""
    lines = [line.strip() for line in text.text.splitlines() if line.strip()]
    return 1 - len(set(lines)) / len(lines) if lines else 0.0


def _log_rate(pattern: re.Pattern[str]) -> Callable[[Text], float]:
    """Return log(1 + matches in a thousand words) as a feature: a few count, many add little."""

    def measure(text: Text) -> float:
        n_matches = sum(1 for _ in pattern.finditer(text.text))
        return math.log1p(1_000 * n_matches / max(1, len(text.words)))

    return measure


_WORDS = {
    kind: frozenset(words.split())
    for kind, words in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
}
_STOP_WORDS, _COMPOUNDS = _WORDS["frequent"], _WORDS["compounds"]
_SMALL_WORDS = {word for word in _STOP_WORDS if len(word) > 1} | _WORDS["small"]
FUNCTION_WORDS = _STOP_WORDS | _SMALL_WORDS
"""The most frequent words of English, which say nothing of what a text is about."""


def _joined_words(text: Text) -> float:
    """Return log(1 + words of a thousand that are a small word and another one of the text)."""
    counts = Counter(text.lower)
    n_joined = sum(
        count
        for word, count in counts.items()
        if 5 <= len(word) <= _LONG_JOINED and word not in _COMPOUNDS
        if any(_is_pair(word[:place], word[place:], counts) for place in range(2, len(word) - 1))
    )
    return math.log1p(1_000 * n_joined / max(1, len(text.words)))


def _is_pair(first: str, second: str, known: Collection[str]) -> bool:
    """Return True if one is a small word and the other one occurs; "walkin" is no pair."""
    return (first in _SMALL_WORDS and second in known) or (
        second in _SMALL_WORDS and second != "in" and first in known
    )


def _long_words(text: Text) -> float:
    """Return log(1 + letters of long words in a thousand letters)."""
    n_letters = sum(map(len, text.words))
    n_long = sum(len(word) for word in text.words if len(word) > _LONG)
    return math.log1p(1_000 * n_long / max(1, n_letters))


FEATURES: dict[str, Callable[[Text], float]] = {
    "words (log)": lambda text: math.log1p(len(text.words)),
    "sentences (log)": lambda text: math.log1p(len(text.sentences)),
    "words per sentence": lambda text: len(text.words) / max(1, len(text.sentences)),
    "mean word length": lambda text: sum(map(len, text.words)) / max(1, len(text.words)),
    "type–token ratio": _type_token_ratio,
    "punctuation": lambda text: text.share(len(_PUNCTUATION.findall(text.text))),
    "digits": lambda text: text.share(len(_DIGIT.findall(text.text))),
    "capitals": lambda text: text.share(sum(map(str.isupper, text.text))),
    "sentences that begin with a capital": _capital_starts,
    "capitals within sentences": _inner_capitals,
    "reading ease": _reading_ease,
    "function words": lambda text: (
        sum(word in _STOP_WORDS for word in text.lower) / max(1, len(text.lower))
    ),
    "words of one letter": lambda text: (
        sum(len(word) == 1 and word not in "ai" for word in text.lower) / max(1, len(text.lower))
    ),
    "words with digits inside": lambda text: (
        sum(not re.sub("['’]", "", word).isalpha() and not word.isdigit() for word in text.lower)
        / max(1, len(text.lower))
    ),
    "ends a sentence": lambda text: float(text.text.rstrip(_CLOSING).endswith((".", "!", "?"))),
    "repeated runs of 5 words": _repeated_runs,
    "repeated lines": _repeated_lines,
    "wrongly decoded characters (log)": _log_rate(_MISDECODED),
    "doubled accents (log)": _log_rate(_DOUBLED_ACCENT),
    "doubled quotation marks (log)": _log_rate(_DOUBLED_QUOTE),
    "tags and entities (log)": _log_rate(_HTML),
    "marks without a space (log)": _log_rate(_JOINED),
    "letters of long words (log)": _long_words,
    "words run together (log)": _joined_words,
}
"""Every feature of a text, in the order of the classifier; all are finite, also of no text."""


def features_of(text: str) -> Float[np.ndarray, " feature"]:
    """Return the features of a text, in the order of `FEATURES`."""
    counts = Text(text)
    return np.array([measure(counts) for measure in FEATURES.values()])
