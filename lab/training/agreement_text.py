"""Sentences whose verb agrees with a subject before another noun, made from templates.

    python -m headlight.lab.training.agreement_text > agreement.txt
    python -m headlight.lab.training.agreement_text train.txt more.txt > mixed.txt
    python -m headlight.lab.training.agreement_text --share 0.03 train.txt more.txt > few.txt
    python -m headlight.lab.training.agreement_text --share 0.5 train.txt more.txt > many.txt

The second writes the files with a sentence before every sixth paragraph or so. A decoder that
meets the sentences only in separate texts agrees there and nowhere else. The third is for the last
steps of a training: a decoder that ends on the second continues stories with such sentences. The
fourth is for an encoder, which learns from a verb only where it is masked.

Books have few of them: a model trained only on books agrees with the noun next to the verb.
Between subject and verb there are one or two phrases of forty prepositions, a relative clause, or a
participle. With files, half of the ends after *was* and *were* are what follows these words
somewhere in the files, half of the nouns are those that the files have in both numbers, and half of
the prepositions are rarer or made: "by the gate of", "out of".

Some nouns and prepositions never occur, so that the measurement shows what carries over: the words
of `headlight.model.controlled_sentences`, and every noun of the lists that
`is_for_test` selects by its checksum. Ten of those (*goose*, *boat*, *village* and others) are not
in the lists, because ends or earlier templates have them.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from headlight.model.corpus import read_documents

WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
LIVING, THINGS = WORDS["living"], WORDS["things"]
LISTED = {name: words.split() for name, words in WORDS.items() if isinstance(words, str)}
PREPOSITIONS, RARE_PREPOSITIONS = LISTED["prepositions"], LISTED["rare_prepositions"]
AT, PLACES = LISTED["at"], LISTED["places"]
VERBS = (*[("was", "were")] * 7, *[("is", "are")] * 3, ("has been", "have been"), ("has", "have"))
SHARE = 0.17
TEST_SHARE = 6
END = "<|endofbook|>"
OPENINGS = ("", "", "", "", "I know that ", "He said that ", "They saw that ", "In the morning ")
AFTER_VERB = re.compile(r"\b(was|were) ((?:[a-z']+ ){0,7}[a-z']+)(?=[.;,])")
A_NOUN = re.compile(
    r"\b[Aa]n? (?:[a-z]+ )?([a-z]{3,})"
    r"(?:[.,;:!?]| (?:is|was|had|has|in|on|at|of|with|by|and|who|that)\b)"
)
NOUNS = re.compile(r"\b(?:the|these|those|two|three|many|some|my|his|her|their|our) ([a-z]{3,}s)\b")
MEASURED = [(noun, f"{noun}s") for noun in LISTED["measured"]]
"""Nouns that the measurement of agreement has and the lists have not."""
AGREEING = re.compile(r"\b(?:an?|one|himself|herself|themselves|they|he|she|it)\b")


def is_for_test(word: str) -> bool:
    """Return True if no template may use a noun: its checksum is divisible by `TEST_SHARE`."""
    return crc32(word.encode()) % TEST_SHARE == 0


def test_nouns() -> list[tuple[str, str]]:
    """Return the nouns, singular and plural, that no template has."""
    return [noun for noun in _listed(f"{LIVING} {THINGS}") if is_for_test(noun[0])]


class Words(NamedTuple):
    """The words that sentences are drawn from.

    ``ends`` are those after *was* and *were*; ``found`` are nouns of texts, and with them half of
    the prepositions are rarer ones.
    """

    living: Sequence[tuple[str, str]]
    things: Sequence[tuple[str, str]]
    ends: Mapping[str, Sequence[str]]
    found: Sequence[tuple[str, str]]


def sentences(
    seed: int = 0,
    ends: Mapping[str, Sequence[str]] | None = None,
    found: Sequence[tuple[str, str]] = (),
) -> Iterator[str]:
    """Make sentences without end; half of them have two nouns of different number.

    Args:
        seed: decides every sentence.
        ends: what may follow *was* and *were*, of `ends_of`; in half of the sentences.
        found: more nouns, singular and plural, of `nouns_of`; half of all nouns.
    """
    draw = random.Random(seed)
    words = Words(_nouns(LIVING), _nouns(THINGS), ends or {}, found)
    while True:
        yield _sentence(draw, words)


def mixed(documents: Sequence[str], share: float = SHARE) -> Iterator[str]:
    """Put a sentence before some of the paragraphs, on a separate line.

    Args:
        documents: texts, a paragraph a line.
        share: the probability that a paragraph has a sentence before it.

    Yields:
        The lines, line ends included; `END` closes each document.
    """
    draw, made = random.Random(1), sentences(1, ends_of(documents), nouns_of(documents))
    for document in documents:
        for line in document.splitlines():
            if line.strip() and draw.random() < share:
                yield f"{next(made)}\n"
            yield f"{line}\n"
        yield f"{END}\n"


def ends_of(documents: Sequence[str]) -> dict[str, list[str]]:
    """Find what follows *was* and *were* in texts, up to eight words before a stop or comma.

    Ends with a word that agrees in number or gender are left out.
    """
    ends: dict[str, list[str]] = {"was": [], "were": []}
    for document in documents:
        for verb, end in AFTER_VERB.findall(document):
            if not AGREEING.search(end):
                ends[verb].append(end)
    return {verb: kept for verb, kept in ends.items() if kept}


def nouns_of(documents: Sequence[str], least: int = 5) -> list[tuple[str, str]]:
    """Find nouns that texts have in both numbers, those for tests left out.

    A noun is between *a* or *an* and a stop, a verb or a preposition, and its plural on *s*
    after a determiner, each at least `least` times.
    """
    single: Counter[str] = Counter()
    plural: Counter[str] = Counter()
    for document in documents:
        single.update(A_NOUN.findall(document))
        plural.update(NOUNS.findall(document))
    kept = {word for noun in (*test_nouns(), *MEASURED) for word in noun}
    return [
        (noun, f"{noun}s")
        for noun, count in sorted(single.items())
        if count >= least and plural[f"{noun}s"] >= least
        if not is_for_test(noun) and not kept & {noun, f"{noun}s"}
    ]


def _listed(text: str) -> list[tuple[str, str]]:
    words = (word.partition(":") for word in text.split())
    return [(singular, plural or f"{singular}s") for singular, _, plural in words]


def _nouns(text: str) -> list[tuple[str, str]]:
    return [noun for noun in _listed(text) if not is_for_test(noun[0])]


def _sentence(draw: random.Random, words: Words) -> str:
    is_living = draw.random() < 0.5
    subject = _noun(draw, words, words.living if is_living else words.things)
    number = draw.randrange(2)
    first = _phrase(draw, subject, number)
    between = _between(draw, words, is_living=is_living, subject=subject)
    verb, end = _predicate(draw, words, number, is_living=is_living)
    if draw.random() < 0.06:
        text = f"{_prepositional(draw, words, subject)} {first} {verb} {end}."
    else:
        text = f"{draw.choice(OPENINGS)}{first}{between} {verb} {end}."
    return text[0].upper() + text[1:]


def _noun(draw: random.Random, words: Words, listed: Sequence[tuple[str, str]]) -> tuple[str, str]:
    is_found = words.found and draw.random() < 0.5
    return draw.choice(words.found if is_found else listed)


def _between(
    draw: random.Random, words: Words, *, is_living: bool, subject: tuple[str, str]
) -> str:
    """Make what is between a subject and its verb, a space before it; sometimes nothing."""
    kind = draw.random()
    if kind < 0.04:
        return ""
    if kind < 0.58:
        return f" {_prepositional(draw, words, subject)}"
    if kind < 0.7:
        return f" {_prepositional(draw, words, subject)} {_prepositional(draw, words, subject)}"
    other = _other(draw, words, subject)
    if kind < 0.8:
        participle = draw.choice(LISTED["of_living" if is_living else "of_things"])
        return f" {participle.replace('_', ' ')} {other}"
    if kind < 0.9 and is_living:
        return f" {draw.choice(('who', 'that'))} {draw.choice(LISTED['relative'])} {other}"
    person = _phrase(draw, draw.choice(words.living), draw.randrange(2))
    return f" {draw.choice(('that ', 'that ', ''))}{person} {draw.choice(LISTED['relative'])}"


def _prepositional(draw: random.Random, words: Words, subject: tuple[str, str]) -> str:
    preposition = draw.choice(PREPOSITIONS)
    if words.found and draw.random() < 0.5:
        made = f"{draw.choice(AT)}_the_{draw.choice(PLACES)}_of"
        preposition = made if draw.random() < 0.3 else draw.choice(RARE_PREPOSITIONS)
    return f"{preposition.replace('_', ' ')} {_other(draw, words, subject)}"


def _other(draw: random.Random, words: Words, subject: tuple[str, str]) -> str:
    """Make a noun phrase of another noun, with either number."""
    while (noun := _noun(draw, words, draw.choice((words.living, words.things)))) == subject:
        pass
    return _phrase(draw, noun, draw.randrange(2))


def _predicate(
    draw: random.Random, words: Words, number: int, *, is_living: bool
) -> tuple[str, str]:
    """Draw a verb in the number of its subject, and the end of the sentence."""
    if draw.random() < 0.8:
        verb = draw.choice(VERBS)[number]
        if verb in words.ends and draw.random() < 0.5:
            return verb, draw.choice(words.ends[verb])
        if verb in ("has", "have"):
            return verb, draw.choice(WORDS["possessions"])
        return verb, draw.choice(WORDS["living_states" if is_living else "thing_states"])
    forms, ends = draw.choice([*WORDS["living_actions" if is_living else "thing_actions"].items()])
    plural, singular = forms.split(":")
    return (singular, plural)[number], draw.choice(ends)


def _phrase(draw: random.Random, noun: tuple[str, str], number: int) -> str:
    """Make a noun phrase: a determiner that fits the number, sometimes an adjective, the noun."""
    fitting = LISTED["several" if number else "one"]
    determiner = draw.choice(fitting if draw.random() < 0.12 else LISTED["any_number"])
    words = (
        [draw.choice(LISTED["adjectives"]), noun[number]]
        if draw.random() < 0.25
        else [noun[number]]
    )
    if determiner == "a" and words[0][0] in "aeiou":
        determiner = "an"
    return " ".join([determiner.replace("_", " "), *words])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="texts that get the sentences")
    parser.add_argument(
        "--share", type=float, default=SHARE, help="of the paragraphs (%(default)s)"
    )
    asked = parser.parse_args()
    alone = (f"{sentence}\n" for sentence in islice(sentences(), 40_000))
    documents = read_documents(asked.files) if asked.files else None
    sys.stdout.writelines(alone if documents is None else mixed(documents, asked.share))
