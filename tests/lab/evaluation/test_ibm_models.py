"""The IBM models: what they learn from a handful of sentences."""

import sys

import pytest

from headlight.lab.evaluation.ibm_models import (
    ibm_model_1_links,
    ibm_model_2_links,
)
from tests.lab.evaluation.test_word_alignment import gold_pair

# Enough to tell the words apart: no two of them always come together.
SENTENCES = [
    ("The dog sleeps.", "Le chien dort."),
    ("The cat sleeps.", "Le chat dort."),
    ("The dog eats.", "Le chien mange."),
    ("A cat eats!", "Un chat mange !"),
    ("A dog", "Un chien"),
]


def test_ibm_model_1_finds_words_by_the_company_they_keep():
    gold = [gold_pair("a DOG eats", "Mange chien Un")]
    (links,) = ibm_model_1_links(SENTENCES * 5, gold, n_iterations=20)
    assert links == {(2, 0), (1, 1), (0, 2)}


def test_ibm_model_2_learns_that_a_language_turns_the_order_around():
    words = ["a", "b", "c", "d", "e"]
    turned = [
        (f"{first} {second}", f"{second.upper()}x {first.upper()}x")
        for first in words
        for second in words
        if first != second
    ]
    gold = [gold_pair("f g", "Px Qx"), gold_pair("a b", "Bx Ax")]
    unknown_words, known_words = ibm_model_2_links(turned, gold)
    assert unknown_words == set()
    assert known_words == {(0, 1), (1, 0)}
    repeated = [gold_pair("a a", "Ax Ax")]
    assert ibm_model_2_links(turned, repeated) == [{(0, 1), (1, 0)}]
    assert ibm_model_1_links(turned, repeated) == [{(1, 0), (1, 1)}]


@pytest.mark.parametrize("align", [ibm_model_1_links, ibm_model_2_links])
def test_without_nltk_the_error_names_what_to_install(align, monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    assert callable(align)
    with pytest.raises(ImportError, match=r"nltk.*pip install 'headlight\[lab\]'"):
        align(SENTENCES, [gold_pair()])
