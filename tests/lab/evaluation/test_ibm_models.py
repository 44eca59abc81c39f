"""The IBM models: what they learn from a handful of sentences."""

import sys

import numpy as np
import pytest

from headlight.lab.evaluation.ibm_models import (
    DiagonalModel,
    diagonal_links,
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


# --- the diagonal prior ---------------------------------------------------------------------------


def test_the_diagonal_model_finds_words_by_the_company_they_keep():
    gold = [gold_pair("a DOG eats", "Un chien mange"), gold_pair("The cat", "Le chat")]
    links, others = diagonal_links(SENTENCES * 5, gold)
    assert links == {(0, 0), (1, 1), (2, 2)}
    assert others == {(0, 0), (1, 1)}


def test_words_win_over_the_diagonal():
    words = ["a", "b", "c", "d", "e", "f"]
    pairs = [
        ([first, second], [second.upper(), first.upper()])
        for first in words
        for second in words
        if first != second
    ]
    alone = [([word], [word.upper()]) for word in words]
    model = DiagonalModel.train(pairs + alone * 5, 10)
    assert sorted(model.align(["a", "b"], ["B", "A"])) == [(0, 1), (1, 0)]
    assert model.tension < 4, "a language that turns the order around loosens the diagonal"


def test_unknown_words_are_linked_along_the_diagonal():
    words = ["a", "b", "c", "d"]
    pairs = [
        ([first, second], [first.upper(), second.upper()]) for first in words for second in words
    ]
    model = DiagonalModel.train(pairs, 5)
    assert model.align(["x", "y", "z"], ["P", "Q", "R"]) == [(0, 0), (1, 1), (2, 2)]


def test_the_prior_is_a_distribution_around_the_diagonal():
    model = DiagonalModel(3.0, {}, {}, {})
    prior = model._prior(4, 3)
    assert prior.shape == (3, 5)
    np.testing.assert_allclose(prior.sum(axis=-1), 1)
    np.testing.assert_allclose(prior[:, 0], model.NULL)
    # exp(-3 |1/4 - 1/3|) over exp(-3 |2/4 - 1/3|)
    np.testing.assert_allclose(prior[0, 1] / prior[0, 2], np.exp(-3 * (1 / 12 - 1 / 6)))
