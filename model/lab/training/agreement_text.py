"""Sentences whose verb agrees with a subject before another noun, made from templates.

    python -m headlight.model.lab.training.agreement_text > agreement.txt
    python -m headlight.model.lab.training.agreement_text train.txt more.txt > mixed.txt
    python -m headlight.model.lab.training.agreement_text --share 0.03 train.txt more.txt > few.txt
    python -m headlight.model.lab.training.agreement_text --share 0.5 train.txt more.txt > many.txt

The second writes the files with a sentence before every sixth paragraph or so. A decoder that
meets the sentences only in separate texts agrees there and nowhere else. The third is for the last
steps of a training: a decoder that ends on the second continues stories with such sentences. The
fourth is for an encoder, which learns from a verb only where it is masked.

Books have few of them: a model trained only on books agrees with the noun next to the verb. The
ten nouns of `headlight.model.lab.evaluation.controlled_sentences`, which measure agreement, do
not occur here, so that the measurement shows what carries over to other nouns. Its prepositions do
occur here, except for a second set.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from headlight.model.lab.training.corpus import read_documents

# ruff: noqa: SIM905 - a line of words is easier to read and change than a list of strings
LIVING = (
    "cat cow lamb goat duck hen bear frog mouse:mice goose:geese child:children man:men "
    "woman:women lady:ladies baby:babies farmer teacher sailor soldier brother sister cousin "
    "friend neighbour giant prince doctor painter stranger visitor"
)
THINGS = (
    "picture box:boxes basket book letter apple cherry:cherries leaf:leaves stone river hill "
    "bridge road lamp chair table window door boat ship wagon wheel bell key button ribbon shoe "
    "coat hat cup plate spoon cloud star storm garden field fence barn nest egg feather "
    "toy doll kite drum"
)
PREPOSITIONS = (
    "near behind with beside by under above around against among before past "
    "next_to in_front_of not_far_from on_the_left_of close_to along_with together_with"
).split()
ADJECTIVES = "old little big young new small great pretty poor red white strange tall quiet".split()
VERBS = (
    *[("was", "were")] * 6,
    *[("is", "are")] * 3,
    ("has been", "have been"),
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
RELATIVE = "saw liked loved followed found knew heard passed watched".split()
SHARE = 0.17
END = "<|endofbook|>"
OPENINGS = ("", "", "", "", "I know that ", "He said that ", "They saw that ", "In the morning ")


def sentences(seed: int = 0) -> Iterator[str]:
    """Make sentences without end; half of them have two nouns of different number."""
    draw = random.Random(seed)
    living, things = _nouns(LIVING), _nouns(THINGS)
    while True:
        yield _sentence(draw, living, things)


def mixed(documents: Sequence[str], share: float = SHARE) -> Iterator[str]:
    """Put a sentence before some of the paragraphs, on a separate line.

    Args:
        documents: texts, a paragraph a line.
        share: the probability that a paragraph has a sentence before it.

    Yields:
        The lines, line ends included; `END` closes each document.
    """
    draw, made = random.Random(1), sentences(1)
    for document in documents:
        for line in document.splitlines():
            if line.strip() and draw.random() < share:
                yield f"{next(made)}\n"
            yield f"{line}\n"
        yield f"{END}\n"


def _nouns(text: str) -> list[tuple[str, str]]:
    words = (word.partition(":") for word in text.split())
    return [(singular, plural or f"{singular}s") for singular, _, plural in words]


def _sentence(
    draw: random.Random, living: list[tuple[str, str]], things: list[tuple[str, str]]
) -> str:
    is_living = draw.random() < 0.6
    subject = draw.choice(living if is_living else things)
    other = draw.choice([noun for noun in living + things if noun != subject])
    number, other_number = draw.randrange(2), draw.randrange(2)
    first, second = _phrase(draw, subject[number]), _phrase(draw, other[other_number])
    if is_living and draw.random() < 0.4:
        between = f"{draw.choice(('who', 'that'))} {draw.choice(RELATIVE)} the"
    else:
        between = draw.choice(PREPOSITIONS).replace("_", " ") + " the"
    if draw.random() < 0.75:
        verb = draw.choice(VERBS)[number]
        end = draw.choice(LIVING_STATES if is_living else THING_STATES)
    else:
        forms, ends = draw.choice([*(LIVING_ACTIONS if is_living else THING_ACTIONS).items()])
        plural, singular = forms.split(":")
        verb, end = (singular, plural)[number], draw.choice(ends.split(";"))
    text = f"{draw.choice(OPENINGS)}the {first} {between} {second} {verb} {end}."
    return text[0].upper() + text[1:]


def _phrase(draw: random.Random, noun: str) -> str:
    return f"{draw.choice(ADJECTIVES)} {noun}" if draw.random() < 0.25 else noun


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
