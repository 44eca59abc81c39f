"""Sentences made from templates, in which a word and its control are known.

In each sentence a head may attend from a query word to the right noun or to the other noun, which
is the control: both nouns occur at both places equally often, so that neither a place nor a word
decides which is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

Noun = tuple[str, str]

NOUNS: tuple[Noun, ...] = tuple(
    (noun, f"{noun}s")
    for noun in (
        *("boy", "girl", "dog", "king", "bird"),
        *("tree", "house", "flower", "horse", "rabbit"),
    )
)
"""Singular and plural; each ordered pair of different nouns is one of 90."""

PREPOSITIONS = ("near", "behind", "with", "beside")
MEN = ("king", "boy", "father", "prince", "uncle", "man")
WOMEN = ("queen", "girl", "mother", "princess", "aunt", "woman")
SUBJECT_FRAMES = (
    "The {subject} {preposition} the {other} {verb} very happy.",
    "{Preposition} the {other} the {subject} still {verb} happy.",
)
# The pronoun as a subject, and as an object.
ANTECEDENT_FRAMES = (
    ("The {first} met the {second}, and then {pronoun} was glad.", ("he", "she")),
    ("When the {first} called the {second}, {pronoun} was in the garden.", ("he", "she")),
    ("The {first} sat down beside the {second}, and we looked at {pronoun}.", ("him", "her")),
)


@dataclass(frozen=True, kw_only=True)
class ControlledSentence:
    """A text with the character spans of the query word, of the right noun and of the other."""

    text: str
    query: tuple[int, int]
    right: tuple[int, int]
    other: tuple[int, int]


def subject_sentences() -> list[ControlledSentence]:
    """Make sentences with a verb, its subject, and another noun of the other number.

    The subject is the farther noun in one frame and the nearer one in the other. 360 sentences.
    """
    sentences = []
    for place, (subject, other) in enumerate(permutations(NOUNS, 2)):
        preposition = PREPOSITIONS[place % len(PREPOSITIONS)]
        for frame, number in product(SUBJECT_FRAMES, (0, 1)):
            words = {
                "subject": subject[number],
                "other": other[1 - number],
                "verb": ("was", "were")[number],
            }
            sentences.append(
                _filled(
                    frame.replace("{preposition}", preposition).replace(
                        "{Preposition}", preposition.capitalize()
                    ),
                    words,
                    query="verb",
                    right="subject",
                    other="other",
                )
            )
    return sentences


def antecedent_sentences() -> list[ControlledSentence]:
    """Make sentences with a man, a woman and a pronoun that only one of them fits.

    Both orders and both pronouns of each pair, in each frame: 432 sentences.
    """
    sentences = []
    for (frame, pronouns), man, woman in product(ANTECEDENT_FRAMES, MEN, WOMEN):
        for is_man_first, of_woman in product((True, False), (0, 1)):
            first, second = (man, woman) if is_man_first else (woman, man)
            is_first_right = is_man_first != bool(of_woman)
            sentences.append(
                _filled(
                    frame,
                    {"first": first, "second": second, "pronoun": pronouns[of_woman]},
                    query="pronoun",
                    right="first" if is_first_right else "second",
                    other="second" if is_first_right else "first",
                )
            )
    return sentences


def _filled(
    frame: str, words: dict[str, str], *, query: str, right: str, other: str
) -> ControlledSentence:
    spans = {}
    for name in sorted(words, key=lambda name: frame.index(f"{{{name}}}")):
        start = frame.index(f"{{{name}}}")
        spans[name] = (start, start + len(words[name]))
        frame = frame.replace(f"{{{name}}}", words[name], 1)
    return ControlledSentence(
        text=frame, query=spans[query], right=spans[right], other=spans[other]
    )
