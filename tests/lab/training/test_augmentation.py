"""The augmentation of sentence pairs: which alterations, how many, and always the same ones."""

import random
import re

import pytest

from headlight.lab.training.augmentation import VOWELS, Augmentation, AugmentationConfig
from headlight.model.corpus import SentencePair

PAIRS = [
    SentencePair("Tom went to the house.", "Tom est allé à la maison."),
    SentencePair("I like Tom's dog.", "J'aime le chien de Tom."),
    SentencePair("The dog of Anna is big.", "Le chien d'Anna est grand."),
    SentencePair("Anna is here.", "Anna est là."),
    SentencePair("Where is Anna?", "Où est Anna ?"),
    SentencePair("Do you see Tom?", "Est-ce que tu vois Tom ?"),
    SentencePair("In the house I see the dog.", "Dans la maison je vois le chien."),
    SentencePair("He has 25 dogs.", "Il a 25 chiens."),
    SentencePair("We live in France.", "Nous vivons en France."),
    SentencePair("France is big.", "La France est grande."),
    SentencePair("I love France.", "J'aime la France."),
] * 20


def augmentation(seed=0, **shares):
    return Augmentation(PAIRS, AugmentationConfig(**shares), seed)


def draw():
    return random.Random(1)


def test_alterations_depend_on_the_seed_and_the_epoch_alone():
    shares = {"joined": 0.2, "renamed": 0.5, "lowered": 0.2, "unstopped": 0.1, "capitals": 0.1}
    once = augmentation(**shares).epoch(3)
    assert once == augmentation(**shares).epoch(3)
    assert once != augmentation(**shares).epoch(4)
    assert once != augmentation(seed=1, **shares).epoch(3)
    assert all(altered != PAIRS[index] for index, altered in once.items())


def test_a_share_is_the_share_of_the_pairs():
    many = Augmentation([SentencePair("One two three four.", "Un.")] * 4000, lowered(0.1), 0)
    assert 0.08 < len(many.epoch(0)) / 4000 < 0.12
    short = Augmentation([SentencePair("Hello.", "Bonjour.")] * 4000, lowered(0.1), 0)
    assert 0.45 < len(short.epoch(0)) / 4000 < 0.55


def lowered(share):
    return AugmentationConfig(lowered=share)


def test_a_name_is_replaced_on_both_sides_by_the_same_one():
    changed = augmentation().rename(PAIRS[1], draw())
    match = re.fullmatch(r"I like (\w+)'s dog\.", changed.source)
    assert match is not None
    assert match[1] != "Tom"
    assert changed.target == f"J'aime le chien de {match[1]}."


def test_a_name_that_french_elides_before_begins_with_a_vowel_again():
    for _ in range(20):
        match = re.search(r"d'(\w+)", augmentation().rename(PAIRS[2], draw()).target)
        assert match is not None
        assert match[1][0] in VOWELS


def test_a_country_after_its_article_keeps_its_name():
    assert all(augmentation().rename(pair, draw()) == pair for pair in PAIRS[8:11])


def test_a_number_is_replaced_on_both_sides_by_one_of_its_length():
    changed = augmentation().rename(PAIRS[7], draw())
    match = re.fullmatch(r"He has ([1-9]\d) dogs\.", changed.source)
    assert match is not None
    assert changed.target == f"Il a {match[1]} chiens."
    assert changed != PAIRS[7]


def test_a_joined_pair_begins_with_the_first_and_joins_both_sides_alike():
    joined = [augmentation().join(PAIRS[0], random.Random(seed)) for seed in range(40)]
    for source, target in joined:
        assert source.startswith("Tom went to the house")
        assert target.startswith("Tom est allé à la maison")
        conjunctions = [(" and ", " et "), (" but ", " mais ")]
        for english, french in conjunctions:
            assert source.count(english) == target.count(french)
    assert any(re.search(r"(and|but) the dog of", pair.source) for pair in joined)
    assert any(re.search(r"house\. ", pair.source) for pair in joined)
    assert not any(re.search(r"(and|but) (where|do) ", pair.source) for pair in joined)


@pytest.mark.parametrize(
    ("share", "forms"),
    [
        ("lowered", {"where is anna?", "where is anna"}),
        ("unstopped", {"Where is Anna"}),
        ("capitals", {"WHERE IS ANNA?", "WHERE is Anna?", "Where IS Anna?", "Where is ANNA?"}),
    ],
)
def test_a_source_is_typed_in_other_ways_and_the_target_stays(share, forms):
    altered = augmentation(**{share: 1.0})
    typed = {altered.retype(PAIRS[4], random.Random(seed)) for seed in range(60)}
    assert {pair.source for pair in typed} == forms
    assert {pair.target for pair in typed} == {"Où est Anna ?"}


@pytest.mark.parametrize(
    "shares", [{"joined": -0.1}, {"renamed": 1.1}, {"lowered": 0.6, "capitals": 0.6}]
)
def test_a_share_out_of_range_is_an_error(shares):
    with pytest.raises(ValueError, match=r"must (lie in|add up)"):
        AugmentationConfig(**shares)
