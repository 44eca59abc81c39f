"""Parts of speech by rules: closed classes by word, open classes by ending and by the word before.

The names are those of Universal Dependencies, https://universaldependencies.org/u/pos/. The rules
know the closed classes of English and of French, the common irregular verbs, and endings; a word
that no rule knows is a noun. No tagged text was at hand to measure them on: they are a way to ask
an atlas for kinds of words, not a tagger to rely on.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

TAGS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN"),
    *("NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "VERB", "X"),
)
NAMES = {
    "adjective": "ADJ",
    "preposition": "ADP",
    "adverb": "ADV",
    "auxiliary": "AUX",
    "conjunction": "CCONJ",
    "determiner": "DET",
    "interjection": "INTJ",
    "noun": "NOUN",
    "number": "NUM",
    "particle": "PART",
    "pronoun": "PRON",
    "name": "PROPN",
    "punctuation": "PUNCT",
    "verb": "VERB",
}
"""Plain names of tags."""
_PLAIN = {tag: name for name, tag in NAMES.items()}
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")

Tagger = Callable[[Sequence[str]], list[str]]


def tag_of(name: str) -> str:
    """Return the tag of a plain name such as ``pronoun``, or of the tag in any case.

    Raises:
        ValueError: there is no such tag.
    """
    tag = NAMES.get(name.lower(), name.upper())
    if tag not in TAGS:
        known = ", ".join([*NAMES, *TAGS])
        raise ValueError(f"there is no part of speech {name[:40]!r}; there are {known}")
    return tag


def kinds_at(text: str, places: Sequence[int]) -> list[str]:
    """Return the plain names of the parts of speech of the words at, or after, some characters.

    A word whose tag has no plain name is returned itself; after the last word there is none: "".
    """
    found = list(_WORD.finditer(text))
    tags = english([match[0] for match in found])
    kinds = [
        (match.end(), _PLAIN.get(tag, match[0])) for match, tag in zip(found, tags, strict=True)
    ]
    return [next((kind for end, kind in kinds if end > place), "") for place in places]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@cache
def _closed(language: str) -> dict[str, frozenset[str]]:
    """Return the closed classes of a language, and the commonest words of open ones, by tag."""
    known = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {tag: _words(words) for tag, words in known[language].items()}


_ADVERB, _VERB = ("ly",), ("ing", "ed")
_NOUN = ("tion", "sion", "ness", "ment", "ity", "ship", "hood", "ism")
_ADJECTIVE = ("ous", "ful", "able", "ible", "less", "ish", "ive")
_NO_VERB = _words(
    "thing something nothing anything everything king ring wing spring morning evening"
)
_NO_VERB |= _words("bed red shed bread seed weed hundred family only belly fly")
_BEFORE_VERB = _words("to will would shall should can could may might must i we they he she who")


def english(words: Sequence[str]) -> list[str]:
    """Return the tags of the words of a sentence, as they are written."""
    return _tagged(words, _closed("english"), _open_english)


def french(words: Sequence[str]) -> list[str]:
    """Return the tags of the words of a French sentence."""
    return _tagged(words, _closed("french"), _open_french)


def _tagged(
    words: Sequence[str], closed: dict[str, frozenset[str]], open_class: Callable[[str, str], str]
) -> list[str]:
    tags: list[str] = []
    before = ""
    for place, word in enumerate(words):
        lower = word.lower()
        if not any(map(str.isalnum, word)):
            tag = "PUNCT" if word.strip() else "X"
        elif any(map(str.isdigit, word)):
            tag = "NUM"
        else:
            known = next((tag for tag, of_tag in closed.items() if lower in of_tag), None)
            begins = place == 0 or tags[-1] in {"PUNCT", "X"}
            if known is not None:
                tag = known
            elif word[:1].isupper() and not begins:
                tag = "PROPN"
            else:
                tag = open_class(lower, before)
        tags.append(tag)
        before = lower
    return tags


def _open_english(word: str, before: str) -> str:
    if word.endswith(_NOUN):
        return "NOUN"
    if word.endswith(_ADVERB) and word not in _NO_VERB:
        return "ADV"
    if len(word) > 4 and word.endswith(_VERB) and word not in _NO_VERB:
        return "VERB"
    if word.endswith(_ADJECTIVE):
        return "ADJ"
    return "VERB" if before in _BEFORE_VERB else "NOUN"


def _open_french(word: str, before: str) -> str:
    if word.endswith("ment"):
        return "ADV"
    if before in _closed("french")["PRON"] | {"ne", "n'"} or word.endswith(
        ("er", "ir", "ez", "ons", "ait", "aient")
    ):
        return "VERB"
    return "ADJ" if word.endswith(("eux", "euse", "ique", "able", "if", "ive")) else "NOUN"
