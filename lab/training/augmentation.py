"""Augmentation of sentence pairs: what people type, and names that must be copied.

Each epoch chooses and alters other pairs. Half of what is altered teaches the model to read other
forms of a source (lower case, no final stop, capitals) and leaves the target as it is; the rest
alters both sides alike: names and numbers replaced by others, and short pairs joined to one long
pair.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headlight.lab.training.config import require
from headlight.model.corpus import SentencePair

WORD = re.compile(r"[^\W\d_]+")
NUMBER = re.compile(r"(?<![\d.,:h])\b[1-9]\d+\b(?![.,:]?\d| ?h\b)")
# French words that show the grammatical gender or the elision of the name after them.
BEFORE_PLACES = re.compile(r"(?:\b(?:en|la|le|les|au|aux|du|des)\s|\bl')$", re.IGNORECASE)
ENDING = re.compile(r"\s*[.!?]+$")
CONJUNCTIONS = ((" and ", " et "), (", and ", ", et "), (" but ", " mais "), (", but ", ", mais "))
# A source of at most this many words is altered more often: people type single words and greetings.
SHORT_WORDS = 3
SHORT_FACTOR = 5
# A name has at least this many pairs in which it is on both sides.
NAME_PAIRS = 3
VOWELS = "AEIOUY"
NAMES: dict[str, list[str]] = {
    part: words.split()
    for part, words in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
}
FRENCH_SHARE = 0.15
CODAS = ["", "", "", "n", "r", "s", "l", "m", "d", "k", "th", "x"]


@dataclass(frozen=True, kw_only=True)
class AugmentationConfig:
    """The share of the pairs that each alteration changes, in [0, 1].

    ``joined``: joined with one or two other pairs. ``renamed``: of the pairs with a name that
    is on both sides, or a number. ``lowered``: lower-case source. ``unstopped``: source without
    its final stop; of the lower-case ones, half. ``capitals``: source in capitals, or one word of
    it. The last three are `SHORT_FACTOR` times as frequent in sources of up to `SHORT_WORDS` words.

    Raises:
        ValueError: a share is out of its range.
    """

    joined: float = 0.0
    renamed: float = 0.0
    lowered: float = 0.0
    unstopped: float = 0.0
    capitals: float = 0.0

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            require(self, name, 0 <= share <= 1, "lie in [0, 1]")
        if self.lowered + self.unstopped + self.capitals > 1:
            raise ValueError("lowered, unstopped and capitals must add up to at most 1")


class Augmentation:
    """Alters the pairs of a corpus; the alterations depend only on the seed and the epoch.

    Args:
        pairs: the training corpus.
        config: the shares.
        seed: decides the alterations together with the epoch.
    """

    def __init__(
        self, pairs: Sequence[SentencePair], config: AugmentationConfig, seed: int
    ) -> None:
        self.pairs = pairs
        self.config = config
        self.seed = seed
        self._common, self._names = _vocabulary(pairs)

    def epoch(self, number: int) -> dict[int, SentencePair]:
        """Return the altered pairs of an epoch, by their index in the corpus."""
        if not any(vars(self.config).values()):
            return {}
        draw = random.Random(f"{self.seed} {number}")
        altered = {}
        for index, pair in enumerate(self.pairs):
            changed = pair
            if draw.random() < self.config.renamed:
                changed = self.rename(changed, draw)
            if draw.random() < self.config.joined:
                changed = self.join(changed, draw)
            changed = self.retype(changed, draw)
            if changed != pair:
                altered[index] = changed
        return altered

    def rename(self, pair: SentencePair, draw: random.Random) -> SentencePair:
        """Replace the names and numbers that are on both sides by other ones."""
        source, target = pair
        for name in self._names.intersection(WORD.findall(source), WORD.findall(target)):
            place = re.compile(rf"\b{name}\b")
            match = place.search(target)
            if match is None or BEFORE_PLACES.search(target[: match.start()]):
                continue
            new = _name(draw, begins_with_vowel=name[0] in VOWELS)
            source, target = place.sub(new, source), place.sub(new, target)
        for digits in set(NUMBER.findall(source)).intersection(NUMBER.findall(target)):
            place = re.compile(rf"\b{digits}\b")
            new = str(draw.randrange(10 ** (len(digits) - 1), 10 ** len(digits)))
            source, target = place.sub(new, source), place.sub(new, target)
        return SentencePair(source, target)

    def join(self, pair: SentencePair, draw: random.Random) -> SentencePair:
        """Join a pair with one or two others, by a conjunction if their form allows it."""
        for _ in range(draw.choice((1, 1, 2))):
            other = self.rename(draw.choice(self.pairs), draw)
            between = draw.choice(CONJUNCTIONS)
            if draw.random() < 0.6 and self._is_clause(pair, other):
                pair = SentencePair(
                    pair.source.removesuffix(".") + between[0] + self._lower_first(other.source),
                    pair.target.removesuffix(".") + between[1] + self._lower_first(other.target),
                )
            else:
                pair = SentencePair(
                    f"{pair.source} {other.source}", f"{pair.target} {other.target}"
                )
        return pair

    def retype(self, pair: SentencePair, draw: random.Random) -> SentencePair:
        """Write the source as people type: in lower case, without its stop, or in capitals."""
        is_short = len(pair.source.split()) <= SHORT_WORDS
        chance = draw.random() / (SHORT_FACTOR if is_short else 1)
        source, config = pair.source, self.config
        if chance < config.lowered:
            source = source.lower()
            if draw.random() < 0.5:
                source = ENDING.sub("", source)
            if draw.random() < 0.1:
                source = source.replace("'", "")
        elif chance < config.lowered + config.unstopped:
            source = ENDING.sub("", source)
        elif chance < config.lowered + config.unstopped + config.capitals:
            if draw.random() < 0.7:
                source = source.upper()
            else:
                word = draw.choice(source.split())
                source = source.replace(word, word.upper(), 1)
        return SentencePair(source, pair.target) if source else pair

    def _is_clause(self, pair: SentencePair, other: SentencePair) -> bool:
        """Return True if a conjunction can join two statements."""
        return all(text.endswith(".") for text in (*pair, *other)) and all(
            self._lower_first(text) != text or text.startswith(("I ", "I'")) for text in other
        )

    def _lower_first(self, text: str) -> str:
        """Write the first word with a small letter if the corpus mostly does so elsewhere."""
        match = WORD.match(text)
        if match is None or match[0].lower() not in self._common:
            return text
        return text[0].lower() + text[1:]


def _vocabulary(pairs: Sequence[SentencePair]) -> tuple[set[str], set[str]]:
    """Find the words that the corpus writes with a small letter, and the names.

    Returns:
        The words that occur more often with a small letter inside a text than with a capital, on
        either side; and the capitalised words of three letters or more that are on both sides of
        `NAME_PAIRS` pairs and never begin with a small letter.
    """
    small: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    shared: Counter[str] = Counter()
    for pair in pairs:
        words = [WORD.findall(text) for text in pair]
        for side in words:
            small.update(word for word in side if word[0].islower())
            capital.update(word for word in side[1:] if word[0].isupper())
        shared.update(
            word
            for word in set(words[0]).intersection(words[1])
            if len(word) > 2 and word[0].isupper() and word[1:].islower()
        )
    common = {word for word, count in small.items() if count > capital[word.capitalize()]}
    names = {
        word for word, count in shared.items() if count >= NAME_PAIRS and not small[word.lower()]
    }
    return common, names


def _name(draw: random.Random, *, begins_with_vowel: bool) -> str:
    """Draw a given name or make one up; French elides before a vowel (*d'Anna*, *de Maria*)."""
    while True:
        if draw.random() < 0.3:
            name = draw.choice(NAMES["given"])
        else:
            syllables = "".join(
                draw.choice(NAMES["onsets"]) + draw.choice(NAMES["nuclei"])
                for _ in range(draw.choice((0, 1, 1, 2)))
            )
            if draw.random() < FRENCH_SHARE:
                first, nucleus = draw.choice(NAMES["french"]), ""
                syllables = syllables or draw.choice(NAMES["onsets"]) + draw.choice(NAMES["nuclei"])
            else:
                first = (
                    draw.choice(VOWELS) if begins_with_vowel else draw.choice(NAMES["first_onsets"])
                )
                nucleus = "" if begins_with_vowel else draw.choice(NAMES["nuclei"])
            name = first + nucleus + syllables + draw.choice(CODAS)
        if len(name) > 2 and (name[0] in VOWELS) == begins_with_vowel:
            return name
