"""Pairs made to teach the gender of a pronoun."""

import re
from itertools import islice

import pytest

from headlight.lab.training import gender_text as gender
from headlight.model.corpus import SentencePair, read_lines

COUNT = 4000


@pytest.fixture(scope="module")
def made() -> list[SentencePair]:
    return list(islice(gender.pairs(), COUNT))


def noun(english: str) -> gender.Noun:
    nouns = [*gender.ANIMALS, *gender.WAYS, *gender.THINGS]
    return next(noun for noun in nouns if noun.english == english)


def test_the_pronoun_and_its_adjective_have_the_gender_of_the_noun_that_tires_or_is_wide() -> None:
    cow, bridge = noun("cow"), noun("bridge")
    tired, long = gender.OF_ANIMALS[0], gender.OF_WAYS[1]

    of_subject = gender.because_of_subject(cow, bridge, tired)
    of_object = gender.because_of_object(cow, bridge, long)

    assert of_subject.target == (
        "La vache n'a pas traversé le pont parce qu'elle était trop fatiguée."
    )
    assert of_object.target == "La vache n'a pas traversé le pont parce qu'il était trop long."


def test_no_noun_is_one_on_which_the_gender_is_measured(made: list[SentencePair]) -> None:
    kept = gender.test_nouns([*gender.ANIMALS, *gender.WAYS, *gender.THINGS])
    clauses = [pair.source for pair in made if " it " in pair.source and "time" not in pair.source]

    assert noun("animal") in kept
    assert noun("street") in kept
    assert len(clauses) > COUNT / 3
    words = set(re.findall(r"\w+", " ".join(clauses)))
    assert not words & {noun.english for noun in kept}


def test_no_sentence_is_one_of_the_visitors(made: list[SentencePair]) -> None:
    assert not {pair.source for pair in made} & set(read_lines(gender.VISITORS))


def test_an_article_is_elided_before_a_vowel(made: list[SentencePair]) -> None:
    assert not [pair for pair in made if re.search(r"\b[lL][ea] [aeiouéœ]", pair.target)]


def test_a_pair_in_american_spelling_follows_in_the_british_one() -> None:
    corpus = [
        SentencePair("My favorite colors.", "Mes couleurs préférées."),
        SentencePair("No.", "Non."),
    ]

    assert list(gender.british(corpus)) == [
        SentencePair("My favourite colours.", "Mes couleurs préférées.")
    ]


def test_half_of_the_pairs_have_an_elided_article_if_asked():
    english = {noun.english for noun in gender.ELIDED_ANIMALS}
    made = list(islice(gender.pairs(is_elided=True), 1000))
    elided = [pair for pair in made if pair.source.split()[1] in english and " it " in pair.source]

    assert 450 < len(elided) < 650
    assert all(pair.target.startswith("L'") for pair in elided)
    assert {"il", "elle"} <= {word for pair in elided for word in re.findall(r"\w+", pair.target)}
