"""Stages that judge a document by itself: its language, words of a list, and signs of spam.

Languages are told apart by py3langid, which is 4.5 MB and needs no network. Of 300 English
sentences of a parallel corpus it knew 100 %, of their French ones 99 %, in 0.05 ms each; langdetect
knew 89 % and 97 % in 3 ms. Of 200 passages of stories both and lingua, which is 96 MB, knew all, in
0.9, 6.4 and 9.1 ms. Spam is judged by counts that a reader can check, as there are no labelled
documents to learn it from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from headlight.lab import lab_libraries
from headlight.model.corpus import CorpusError, read_lines

N_JUDGED = 4_000
"""Characters of a document from which its language is judged."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LINK = re.compile(r"https?://|www\.|\b[\w.]+@[\w.]+\.\w+")
_NUMBER = re.compile(r"[$€£]\s?\d|\d\s?[%$€£]|\+?\d[\d ()-]{8,}\d")
_SALES = """
buy cheap click offer offers free discount casino bonus viagra pills loan loans credit win
winner prize cash earn income subscribe unsubscribe guarantee guaranteed limited order deal
deals sale save price prices shipping promo coupon bitcoin crypto investment forex porn xxx
sexy webcam dating seo backlinks followers
"""
SALES = frozenset(_SALES.split())
"""Words of offers; any of them is innocent on its own."""

SIGNS: Mapping[str, tuple[str, float]] = {
    "links": ("links and addresses, in a hundred words", 2.5),
    "sales_words": ("words of offers, in a hundred words", 8.0),
    "prices": ("prices, percentages and telephone numbers, in a hundred words", 3.0),
    "capitals": ("words in capitals, in a hundred words", 25.0),
    "exclamations": ("exclamation marks, in a hundred words", 10.0),
}
"""The signs of spam, and the bound above which each counts."""

N_SIGNS = 2
"""Signs that make a document spam."""


class Filter(Protocol):
    """A stage: it names the reason to drop a text, or None."""

    def reason(self, text: str) -> dict[str, Any] | None:
        """Return the reason with its ``kind``, or None."""


@cache
def _identifier() -> Any:
    with lab_libraries():
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class LanguageFilter:
    """Drops what is in other languages.

    Args:
        languages: ISO 639-1 codes that are kept, such as ``en``.

    Raises:
        ValueError: a code is unknown.
    """

    def __init__(self, languages: Iterable[str]) -> None:
        self.languages = frozenset(languages)
        known = set(_identifier().nb_classes)
        if unknown := sorted(self.languages - known):
            raise ValueError(
                f"there is no language {unknown[0]!r}; the codes are {', '.join(sorted(known))}"
            )

    def reason(self, text: str) -> dict[str, Any] | None:
        """As `Filter.reason`: ``other_language`` with the code and its probability."""
        language, probability = _identifier().classify(text[:N_JUDGED])
        if language in self.languages:
            return None
        return {
            "kind": "other_language",
            "language": language,
            "probability": round(float(probability), 4),
        }


class WordFilter:
    """Drops what holds an unwanted word or phrase, whatever its case."""

    def __init__(self, words: Iterable[str]) -> None:
        escaped = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<!\w)(?:{escaped})(?!\w)", re.IGNORECASE)

    @classmethod
    def read(cls, path: Path) -> WordFilter:
        """Read a list, a word or phrase a line; ``#`` begins a comment.

        Raises:
            CorpusError: the file is unusable, or holds no word.
        """
        words = [line.partition("#")[0].strip() for line in read_lines(path)]
        if not any(words):
            raise CorpusError(f"{path} holds no word; write one on each line")
        return cls(filter(None, words))

    def reason(self, text: str) -> dict[str, Any] | None:
        """As `Filter.reason`: ``unwanted_word`` with the first."""
        match = self._pattern.search(text)
        return match and {"kind": "unwanted_word", "word": match[0]}


def spam_signs(text: str) -> dict[str, float]:
    """Count the signs of spam in a hundred words of a text, by the names of `SIGNS`."""
    words = _WORD.findall(text)
    share = 100 / max(1, len(words))
    return {
        "links": share * len(_LINK.findall(text)),
        "sales_words": share * sum(word.lower() in SALES for word in words),
        "prices": share * len(_NUMBER.findall(text)),
        "capitals": share * sum(len(word) > 1 and word.isupper() for word in words),
        "exclamations": share * text.count("!"),
    }


class SpamFilter:
    """Drops what shows two or more of the `SIGNS` of spam."""

    def reason(self, text: str) -> dict[str, Any] | None:
        """As `Filter.reason`: ``spam`` with its signs."""
        counts = spam_signs(text)
        signs = {name: round(count, 1) for name, count in counts.items() if count > SIGNS[name][1]}
        return {"kind": "spam", "signs": signs} if len(signs) >= N_SIGNS else None
