"""Quality: features of any text, and a classifier that is scikit-learn's without its objects."""

import math
import random

import numpy as np
import pytest

from headlight.model.text_quality.classifier import read_classifier
from headlight.model.text_quality.features import FEATURES, Text, features_of

STORY = (
    "Once upon a time a small fox lived near the river. She was hungry, and the farmer had three "
    'fat hens. "I will wait," she said, "until he sleeps." But the old dog heard her steps.\n'
    "The fox ran back over the bridge and hid in the tall grass until the morning came."
)


def feature(name, text):
    return FEATURES[name](Text(text))


SECOND = (
    "In the morning the farmer's daughter opened the door. She saw small marks in the snow, and "
    'she laughed. "Father, come and look!" she cried. He counted his hens, and not one was missing.'
)


@pytest.mark.parametrize("text", ["", " \n", "?!", "a", "…", "123", "\u0301", "word", "🦊" * 9])
def test_any_text_has_finite_features(text):
    features = features_of(text)
    assert features.shape == (len(FEATURES),)
    assert np.isfinite(features).all()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("words (log)", "The cat's hat.", math.log(4)),
        ("sentences (log)", 'One. "Two!" Three? Four', math.log(5)),
        ("words per sentence", "One two three. Four.", 2),
        ("mean word length", "an old hat", 8 / 3),
        ("type–token ratio", "the cat the dog", 3 / 4),
        ("type–token ratio", "a b " * 50, 2 / 50),
        ("punctuation", "a, b.", 2 / 5),
        ("digits", "a1b2", 1 / 2),
        ("capitals", "ABcd", 1 / 2),
        ("sentences that begin with a capital", "One. two. Three.", 2 / 3),
        ("capitals within sentences", "One Two three. Four Five six.", 2 / 6),
        # 6 words, 1 sentence, 7 syllables.
        ("reading ease", "The cat sat on the table.", 206.835 - 1.015 * 6 - 84.6 * 7 / 6),
        ("function words", "the cat and the dog", 3 / 5),
        ("words of one letter", "a b I c", 2 / 4),
        ("words with digits inside", "he1lo you 12 don't", 1 / 4),
        ("words with digits inside", "the king’s 3rd don’t", 1 / 4),
        ("ends a sentence", 'He said: "Go."\n', 1),
        ("ends a sentence", "He said", 0),
        ("repeated runs of 5 words", "a b c d e " * 2, 1 / 6),
        ("repeated lines", "one\ntwo\n\none\n", 1 / 3),
    ],
)
def test_a_feature_counts_what_it_says(name, text, value):
    assert feature(name, text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wrongly decoded characters (log)", "She saidâ€™ that the cafÃ© was closed."),
        ("doubled accents (log)", "cafe\u0301\u0301"),
        ("doubled quotation marks (log)", 'He said ""no"" twice.'),
        ("tags and entities (log)", "<p>One &amp; two.</p>"),
        ("marks without a space (log)", "One,two.Three"),
        ("letters of long words (log)", "thelittlefoxwenthome"),
        ("words run together (log)", "The fox sat, and hesat on till he went, and wentto sleep."),
    ],
)
def test_a_fault_has_its_own_feature(name, text):
    assert feature(name, text) > 1
    assert feature(name, STORY) < 1


@pytest.mark.parametrize("text", ["word " * 50_000, "x" * 200_000, "The end. " * 2_000])
def test_no_feature_alone_makes_an_endless_line_good(text):
    assert read_classifier().score(text) < 0.01


@pytest.mark.parametrize(
    "damaged",
    [
        " ".join(random.Random(0).sample(STORY.split(), len(STORY.split()))),
        STORY.replace(" ", ""),
        STORY.replace('"', '""'),
        STORY.replace("e", "e\u0301\u0301"),
        f"<p>{STORY.replace('. ', '.</p><p class=text>')}</p>",
        f"{STORY[:90]} {STORY[90:130] * 9}",
    ],
)
def test_the_classifier_that_ships_tells_a_story_from_its_damage(damaged):
    classifier = read_classifier()
    assert classifier.features == tuple(FEATURES)
    assert classifier.score(f"{STORY}\n{SECOND}") > 0.9
    assert classifier.score(damaged) < 0.4
