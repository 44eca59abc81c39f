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
of `headlight.model.profiles.controlled_sentences`, and every noun of the lists below that
`is_for_test` selects by its checksum. Ten of those (*goose*, *boat*, *village* and others) are not
in the lists, because ends or earlier templates have them.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from headlight.model.corpus import read_documents

# ruff: noqa: SIM905 - a line of words is easier to read and change than a list of strings
LIVING = (
    "cat cow lamb goat duck hen bear frog mouse:mice child:children man:men "
    "woman:women lady:ladies baby:babies farmer teacher sailor soldier brother sister cousin "
    "friend neighbour giant prince doctor painter stranger visitor wolf:wolves fox:foxes lion "
    "tiger monkey elephant pig sheep:sheep puppy:puppies kitten chicken swallow robin crow owl "
    "eagle swan bee spider ant butterfly:butterflies snake fish:fish squirrel donkey pony:ponies "
    "camel beetle fairy:fairies witch:witches dwarf:dwarfs queen princess:princesses knight lord "
    "servant cook maid nurse guard shepherd hunter miller baker tailor captain pirate beggar thief:"
    "thieves judge clerk student scholar pupil uncle aunt mother father daughter son grandmother "
    "boatman:boatmen fisherman:fishermen widow orphan hero:heroes minister merchant traveller guest"
)
THINGS = (
    "picture box:boxes basket book letter apple cherry:cherries leaf:leaves stone river hill "
    "bridge road lamp chair table window door ship wagon wheel bell key button ribbon shoe "
    "coat hat plate cloud star storm field nest egg feather "
    "toy doll drum bed blanket pillow candle mirror clock ladder bucket broom rope sword crown "
    "ring purse penny:pennies coin bag trunk chest drawer shelf:shelves knife:knives fork bowl "
    "pot kettle oven stove chimney roof wall gate tower castle church:churches school shop cottage "
    "hut cabin tent city:cities town street path wood forest mountain valley island lake "
    "pond brook beach:beaches rock cave hole bush:bushes branch:branches root rose lily:lilies "
    "berry:berries nut pear plum cake pie loaf:loaves song story:stories word voice sound smell "
    "colour idea question answer secret promise dream rule lesson machine engine train cart "
    "carriage sail flag cannon gun bow arrow nail hammer cabinet carpet curtain"
)
PREPOSITIONS = (
    "near behind with beside by under above around against among before past "
    "next_to in_front_of not_far_from on_the_left_of close_to along_with together_with "
    "in in on on at of of of over inside outside beneath across along after opposite through "
    "to for about like upon within on_top_of at_the_foot_of in_the_middle_of on_the_way_to "
    "on_the_other_side_of far_away_from belonging_to as_well_as"
).split()
RARE_PREPOSITIONS = (
    "round down up off onto amid amongst despite during except concerning regarding throughout "
    "unlike versus aboard astride atop bar circa considering failing following given including "
    "minus notwithstanding outwith pending per plus save since than till times touching until via "
    "worth out_of instead_of because_of ahead_of apart_from aside_from away_with due_to "
    "owing_to thanks_to prior_to as_for but_for except_for save_for up_to out_towards down_by "
    "over_by up_in down_in out_on over_against in_spite_of in_place_of in_search_of in_need_of "
    "in_charge_of in_favour_of by_means_of for_the_sake_of for_want_of in_honour_of in_care_of "
    "in_line_with in_league_with in_love_with at_odds_with in_touch_with at_home_with "
    "next_door_to in_addition_to with_regard_to in_answer_to half_way_to close_by nearest"
).split()
AT = "in on at by near under over behind inside outside above".split()
PLACES = (
    "side end top bottom middle back front corner heart head foot shore roof mouth neck door gate "
    "tail height length shadow light care name house company hands arms eyes"
).split()
OF_LIVING = "sitting_near standing_by playing_with waiting_for running_after looking_at talking_to"
OF_THINGS = "lying_near given_to made_by hidden_under sold_by brought_by found_in standing_by"
ADJECTIVES = (
    "old little big young new small great pretty poor red white strange tall quiet "
    "black brown green golden silver wooden broken lovely clever tired hungry happy bright dark"
).split()
ANY_NUMBER = "the the the the the the the my his her our their your Tom's mother's".split()
ONE = "a this that one every each another".split()
SEVERAL = "these those two three some many all_the several both_the".split()
VERBS = (
    *[("was", "were")] * 7,
    *[("is", "are")] * 3,
    ("has been", "have been"),
    ("has", "have"),
)
LIVING_STATES = (
    "very happy;very old;very sad;gone;still there;not to be seen;ready at last;very quiet;"
    "from another country;known to the whole village;the first thing that she saw;very tired;"
    "in the way;lost for three days;wet with rain;waiting;sleeping;asleep;hungry;safe;glad of it"
).split(";")
THING_STATES = (
    "very old;quite new;gone;still there;too small;too big;covered with snow;"
    "white in the moonlight;so pretty that everybody looked;not to be seen;"
    "known to the whole village;very small;the first thing that she saw;as good as ever;"
    "in the way;lost;warm in the sun;nice to look at;just as he remembered;wet with rain;"
    "broken;clean at last"
).split(";")
POSSESSIONS = "no name;a long way to go;something to say;many friends;a place of honour".split(";")
LIVING_ACTIONS = {
    "look:looks": "very tired;happy;at the sky;back",
    "stand:stands": "in the rain;there all day;alone",
    "seem:seems": "strange;happy;to wait;to know us",
    "come:comes": "from the city;back in spring;first;too late",
    "go:goes": "home at night;to the market;away;with us",
    "want:wants": "something to eat;a little more time;to go in;nothing",
    "sing:sings": "every morning;a song;softly",
}
THING_ACTIONS = {
    "look:looks": "old;beautiful;the same every day;very small from here",
    "fall:falls": "down;into the water;behind",
    "stand:stands": "in the rain;there all day;near the wall",
    "belong:belongs": "to my uncle;to nobody;here;to the school",
    "make:makes": "no noise;a long shadow;us laugh;her think of home",
    "need:needs": "a new coat of paint;care;some light;more room",
}
RELATIVE = "saw liked loved followed found knew heard passed watched met called helped".split()
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
MEASURED = [
    (noun, f"{noun}s")
    for noun in "boy girl dog king bird tree house flower horse rabbit goose boat village".split()
]
"""Nouns that the measurement of agreement has and the lists above have not."""
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
        participle = draw.choice((OF_LIVING if is_living else OF_THINGS).split())
        return f" {participle.replace('_', ' ')} {other}"
    if kind < 0.9 and is_living:
        return f" {draw.choice(('who', 'that'))} {draw.choice(RELATIVE)} {other}"
    person = _phrase(draw, draw.choice(words.living), draw.randrange(2))
    return f" {draw.choice(('that ', 'that ', ''))}{person} {draw.choice(RELATIVE)}"


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
            return verb, draw.choice(POSSESSIONS)
        return verb, draw.choice(LIVING_STATES if is_living else THING_STATES)
    forms, ends = draw.choice([*(LIVING_ACTIONS if is_living else THING_ACTIONS).items()])
    plural, singular = forms.split(":")
    return (singular, plural)[number], draw.choice(ends.split(";"))


def _phrase(draw: random.Random, noun: tuple[str, str], number: int) -> str:
    """Make a noun phrase: a determiner that fits the number, sometimes an adjective, the noun."""
    fitting = SEVERAL if number else ONE
    determiner = draw.choice(fitting if draw.random() < 0.12 else ANY_NUMBER)
    words = [draw.choice(ADJECTIVES), noun[number]] if draw.random() < 0.25 else [noun[number]]
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
