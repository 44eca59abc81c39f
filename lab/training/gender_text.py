"""English–French pairs whose pronoun and adjective have the gender of a noun, made from templates.

    python -m headlight.lab.training.gender_text > gender.tsv
    python -m headlight.lab.training.gender_text train.tsv > gender.tsv
    python -m headlight.lab.training.gender_text --elided train.tsv > elided.tsv

English *it* is *il* or *elle* after the gender of the French noun that it stands for, which may be
the subject ("The dog didn't cross the road because it was too tired.") or the object ("… because it
was too wide."). Tatoeba has few such sentences. With a file, its pairs that have an American
spelling follow once more in the British one. With ``--elided`` half of the animals are
`ELIDED_ANIMALS`.

A noun that `is_for_test` selects by the checksum of its English word never occurs, so that the
measurement shows what carries over; nor does a sentence of ``gold/visitors.txt``.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from headlight.model.corpus import SentencePair, read_pairs

TEST_SHARE = 5
N_PAIRS = 16_000
VISITORS = Path(__file__).parents[1] / "evaluation" / "gold" / "visitors.txt"
ELIDED = "aeiouhéêèâœ"


class Noun(NamedTuple):
    """A noun in both languages; ``gender`` is 0 for masculine and 1 for feminine."""

    english: str
    french: str
    gender: int


class Adjective(NamedTuple):
    """An adjective; ``french`` has the masculine and the feminine form."""

    english: str
    french: tuple[str, str]


def _nouns_of(masculine: str, feminine: str) -> list[Noun]:
    return [
        Noun(english.replace("_", " "), french.replace("_", " "), gender)
        for gender, text in enumerate((masculine, feminine))
        for english, _, french in (pair.partition(":") for pair in text.split())
    ]


def _adjectives_of(text: str) -> list[Adjective]:
    forms = (word.replace("_", " ").split(":") for word in text.split())
    return [Adjective(english, (male, rest[0] if rest else male)) for english, male, *rest in forms]


WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ANIMALS, WAYS, THINGS, PLACES, ELIDED_ANIMALS = (
    _nouns_of(**WORDS["nouns"][name])
    for name in ("animals", "ways", "things", "places", "elided_animals")
)
"""The article of the last ones, *l'*, shows no gender: a model took it for a feminine one."""
OF_ANIMALS, OF_WAYS, OF_THINGS, QUICK = (
    _adjectives_of(WORDS[name]) for name in ("of_animals", "of_ways", "of_things", "quick")
)
COLOURS = OF_THINGS[10:18]
CROSSINGS = WORDS["crossings"]
"""Infinitive, past and French participle; the participles have their infinitives in the file."""


def is_for_test(noun: Noun) -> bool:
    """Return True if no template may use a noun: its checksum is divisible by `TEST_SHARE`."""
    return noun.english == "animal" or crc32(noun.english.encode()) % TEST_SHARE == 0


def test_nouns(nouns: Sequence[Noun]) -> list[Noun]:
    """Return the nouns of a list that no template has."""
    return [noun for noun in nouns if is_for_test(noun)]


def pairs(*, is_elided: bool = False) -> Iterator[SentencePair]:
    """Make pairs without end, none with a source of the visitors' list.

    Args:
        is_elided: whether half of the pairs are of `because_of_subject` with `ELIDED_ANIMALS`.
    """
    draw = random.Random(0)
    visitors = set(VISITORS.read_text(encoding="utf-8").splitlines())
    frames = (
        *[_because_of_subject] * 6, *[_because_of_object] * 5, *[_and_it] * 4, *[_but_it] * 3,
        *[_where] * 2, *[_went] * 2, *[_going] * 1, *[_favourite] * 2, _learnt, _fond, *[_jump] * 3,
        _time, *[_is_adjective] * 2,
    )  # fmt: skip
    while True:
        is_next_elided = is_elided and draw.random() < 0.5
        pair = (_because_of_elided if is_next_elided else draw.choice(frames))(draw)
        if pair.source not in visitors:
            yield pair


def british(corpus: Sequence[SentencePair]) -> Iterator[SentencePair]:
    """Yield the pairs whose source has an American spelling, in the British one."""
    for pair in corpus:
        source = pair.source
        for american, other in WORDS["british"]:
            source = re.sub(rf"\b{american}(?=s?\b|ed\b|ly\b)", other, source)
        if source != pair.source:
            yield SentencePair(source, pair.target)


def the(noun: Noun) -> str:
    """Write a noun with its definite article."""
    if noun.french[0] in ELIDED:
        return f"l'{noun.french}"
    return f"{('le', 'la')[noun.gender]} {noun.french}"


def because_of_subject(
    subject: Noun, place: Noun, adjective: Adjective, verb: Sequence[str] = CROSSINGS[0]
) -> SentencePair:
    """Make "The dog didn't cross the road because it was too tired." and its translation."""
    return _because(subject, place, adjective, subject.gender, verb)


def because_of_object(subject: Noun, place: Noun, adjective: Adjective) -> SentencePair:
    """Make "The dog didn't cross the road because it was too wide." and its translation."""
    return _because(subject, place, adjective, place.gender, CROSSINGS[0])


def _because(
    subject: Noun, place: Noun, adjective: Adjective, gender: int, verb: Sequence[str]
) -> SentencePair:
    return SentencePair(
        f"The {subject.english} didn't {verb[0]} the {place.english} because it was too "
        f"{adjective.english}.",
        _capital(
            f"{the(subject)} n'a pas {verb[2]} {the(place)} parce qu'{('il', 'elle')[gender]} "
            f"était trop {adjective.french[gender]}."
        ),
    )


def _because_of_subject(draw: random.Random, animals: Sequence[Noun] = ANIMALS) -> SentencePair:
    subject, place = _taught(draw, animals), _taught(draw, WAYS)
    pair = because_of_subject(subject, place, draw.choice(OF_ANIMALS), draw.choice(CROSSINGS))
    return _varied(draw, pair)


def _because_of_elided(draw: random.Random) -> SentencePair:
    return _because_of_subject(draw, ELIDED_ANIMALS)


def _because_of_object(draw: random.Random) -> SentencePair:
    subject, place = _taught(draw, ANIMALS), _taught(draw, WAYS)
    return _varied(draw, because_of_object(subject, place, draw.choice(OF_WAYS)))


def _varied(draw: random.Random, pair: SentencePair) -> SentencePair:
    """Change some words that do not matter: the contraction, the tense of the first clause."""
    source, target = pair
    if draw.random() < 0.2:
        source = source.replace("didn't", "did not")
    elif draw.random() < 0.2:
        source = source.replace("didn't", "couldn't")
        target = target.replace("n'a pas", "n'a pas pu")
        for participle, base in WORDS["infinitives"]:
            target = target.replace(f"pu {participle}", f"pu {base}")
    if draw.random() < 0.2:
        source, target = source.replace(" too ", " very "), target.replace(" trop ", " très ")
    return SentencePair(source, target)


def _and_it(draw: random.Random) -> SentencePair:
    noun = _taught(draw, [*THINGS, *ANIMALS])
    first, second = draw.sample(OF_THINGS, 2)
    pronoun = ("il", "elle")[noun.gender]
    return SentencePair(
        f"The {noun.english} is {first.english} and it is {second.english}.",
        _capital(
            f"{the(noun)} est {first.french[noun.gender]} et {pronoun} est "
            f"{second.french[noun.gender]}."
        ),
    )


def _but_it(draw: random.Random) -> SentencePair:
    noun, adjective = _taught(draw, THINGS), draw.choice(OF_THINGS)
    pronoun, article = ("il", "elle")[noun.gender], ("un", "une")[noun.gender]
    an = "an" if noun.english[0] in "aeiou" else "a"
    verbs = (("bought", "ai acheté"), ("found", "ai trouvé"), ("saw", "ai vu"))
    verb, french = draw.choice(verbs)
    return SentencePair(
        f"I {verb} {an} {noun.english}, but it is too {adjective.english}.",
        f"J'{french} {article} {noun.french}, mais {pronoun} est trop "
        f"{adjective.french[noun.gender]}.",
    )


def _where(draw: random.Random) -> SentencePair:
    noun, place = _taught(draw, THINGS), _taught(draw, THINGS)
    pronoun = ("Il", "Elle")[noun.gender]
    where = draw.choice((("on", "sur"), ("under", "sous"), ("behind", "derrière")))
    return SentencePair(
        f"Where is the {noun.english}? It is {where[0]} the {place.english}.",
        f"Où est {the(noun)} ? {pronoun} est {where[1]} {the(place)}.",
    )


def _is_adjective(draw: random.Random) -> SentencePair:
    noun, adjective = _taught(draw, [*THINGS, *ANIMALS]), draw.choice(OF_THINGS)
    start = draw.choice((("The", None), ("This", ("ce", "cette")), ("My", ("mon", "ma"))))
    if start[1] is None or noun.french[0] in ELIDED:
        start, french = ("The", None), the(noun)
    else:
        french = f"{start[1][noun.gender]} {noun.french}"
    return SentencePair(
        f"{start[0]} {noun.english} is {adjective.english}.",
        _capital(f"{french} est {adjective.french[noun.gender]}."),
    )


def _at(place: Noun) -> str:
    if place.french[0] in ELIDED:
        return f"à l'{place.french}"
    return f"{('au', 'à la')[place.gender]} {place.french}"


def _went(draw: random.Random) -> SentencePair:
    place, company = draw.choice(PLACES), draw.choice(WORDS["company"])
    english, went, french, _ = draw.choice(WORDS["subjects"])
    day = draw.choice(WORDS["days"])
    return SentencePair(
        f"{day[0]} {english} {went} to the {place.english} with {company[0]}.",
        _capital(f"{day[1]}, {french} {_at(place)} avec {company[1]}."),
    )


def _going(draw: random.Random) -> SentencePair:
    place = draw.choice(PLACES)
    english, _, _, french = draw.choice(WORDS["subjects"])
    forms = {"I": "I am", "we": "we are", "they": "they are"}
    return SentencePair(
        _capital(f"{forms.get(english, f'{english} is')} going to the {place.english}."),
        _capital(f"{french} {_at(place)}."),
    )


def _favourite(draw: random.Random) -> SentencePair:
    noun = Noun(*draw.choice(WORDS["favourites"]))
    possessive = draw.choice(WORDS["possessives"])
    preferred = ("préféré", "préférée")[noun.gender]
    french = possessive[1][0] if noun.french[0] in ELIDED else possessive[1][noun.gender]
    if noun.english == "colour":
        colour = draw.choice(COLOURS)
        return SentencePair(
            _capital(f"{possessive[0]} favourite colour is {colour.english}."),
            _capital(f"{french} couleur préférée est le {colour.french[0]}."),
        )
    return SentencePair(
        _capital(f"what is {possessive[0]} favourite {noun.english}?"),
        f"{('Quel', 'Quelle')[noun.gender]} est {french} {noun.french} {preferred} ?",
    )


def _learnt(draw: random.Random) -> SentencePair:
    english, french, gender = draw.choice(WORDS["learnt"])
    verb, plural = ("sont", "s") if french.startswith("les ") else ("est", "")
    ends = (
        ("very interesting", f"très {('intéressant', 'intéressante')[gender]}{plural}"),
        ("fun", f"{('amusant', 'amusante')[gender]}{plural}"),
        ("difficult", f"difficile{plural}"),
        ("a lot of fun", f"très {('amusant', 'amusante')[gender]}{plural}"),
    )
    end = draw.choice(ends)
    return SentencePair(_capital(f"{english} is {end[0]}."), _capital(f"{french} {verb} {end[1]}."))


def _fond(draw: random.Random) -> SentencePair:
    subject = draw.choice((("we", "nous vous aimons"), ("he", "il t'aime"), ("she", "elle t'aime"),
                           ("they", "ils vous aiment"), ("I", "je l'aime")))  # fmt: skip
    verb = "loves" if subject[0] in ("he", "she") else "love"
    whom = "her" if subject[0] == "I" else "you"
    return SentencePair(
        _capital(f"{subject[0]} {verb} {whom} so much."),
        _capital(f"{subject[1]} {draw.choice(('tant', 'tellement'))}."),
    )


def _jump(draw: random.Random) -> SentencePair:
    first, second = _taught(draw, ANIMALS), _taught(draw, ANIMALS)
    verb, of_first, of_second = draw.choice(WORDS["jumps"]), draw.choice(QUICK), draw.choice(QUICK)
    of, noun = verb[1].endswith(" de"), f"{the(second)} {of_second.french[second.gender]}"
    french = f"{verb[1]} {noun}".replace("de le ", "du ") if of else f"{verb[1]} {noun}"
    return SentencePair(
        f"The {of_first.english} {first.english} {verb[0]} the {of_second.english} "
        f"{second.english}.",
        _capital(f"{the(first)} {of_first.french[first.gender]} {french}."),
    )


def _time(draw: random.Random) -> SentencePair:
    (source, target), (where, french) = (
        draw.choice(WORDS["times"]),
        draw.choice(WORDS["places_of_time"]),
    )
    return SentencePair(source.format(where), target.format(french))


def _taught(draw: random.Random, nouns: Sequence[Noun]) -> Noun:
    """Draw a noun that is not kept for the test."""
    while is_for_test(noun := draw.choice(nouns)):
        pass
    return noun


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="pairs with American spellings")
    parser.add_argument("--elided", action="store_true", help="half with an elided article")
    asked = parser.parse_args()
    made = list(islice(pairs(is_elided=asked.elided), N_PAIRS))
    if asked.files:
        made += british(read_pairs(asked.files))
    sys.stdout.writelines(f"{source}\t{target}\n" for source, target in made)
