"""Votes over toy chains by hand, and the limits that hold for any model."""

import numpy as np
import pytest

from headlight.model.experiments.thinking import (
    EXPERIMENT,
    Chain,
    most_frequent,
    most_probable,
    needed,
)


def chain(answer, probability, text=None, n_tokens=3):
    return Chain(text or f"{answer}", answer, n_tokens, probability)


def test_of_equally_frequent_answers_the_first_counts_and_none_does_not():
    assert most_frequent([chain(each, 0.1) for each in (None, 3, 2, 2, 3)]) == 3
    assert most_frequent([chain(None, 0.1)] * 2) is None


def test_the_probability_of_an_answer_counts_each_different_chain_once():
    often = [chain(1, 0.1, "a")] * 3
    assert most_probable([*often, chain(2, 0.2, "b")]) == 2
    assert most_probable([*often, chain(2, 0.2, "b"), chain(1, 0.15, "c")]) == 1
    assert most_probable([chain(None, 0.9)]) is None


def test_voting_stops_when_different_chains_of_one_answer_are_probable_enough():
    chains = [
        chain(1, 0.2, "a"),
        chain(1, 0.2, "a"),  # the same chain is no more evidence
        chain(2, 0.25, "b"),
        chain(1, 0.2, "c"),
    ]
    assert needed(chains, 0.1) == 1
    assert needed(chains, 0.22) == 3
    assert needed(chains, 0.3) == 4
    assert needed(chains, 0.9) == 4


@pytest.fixture(scope="module")
def result():
    return EXPERIMENT.result({"n_problems": 6, "n_chains": 3, "model": "sums"})


def test_more_chains_cost_their_tokens_and_any_is_never_below_the_vote(result):
    tokens = result["majority_tokens"].data
    assert (np.diff(tokens) > 0).all()
    any_right, vote = result["any_right"].data, result["majority_right"].data
    assert (any_right >= vote).all()
    assert (np.diff(any_right) >= 0).all()
    assert result["adaptive_tokens"].data.max() <= tokens[-1]
    chains = result["adaptive_chains"].data
    assert (np.diff(chains, axis=0) >= 0).all()  # a higher bound never needs fewer
    assert chains.min() >= 1


def test_one_chain_of_the_reinforced_model_is_mostly_right(result):
    assert result["majority_right"].data[0] >= 0.5
