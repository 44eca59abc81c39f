"""Votes and search over toy chains by hand, and the limits that hold for any model."""

import numpy as np
import pytest

from headlight.model.arithmetic import Problem, mark, split
from headlight.model.checkpoint.loading import ZOO, load_checkpoint
from headlight.model.experiments.thinking import (
    EXPERIMENT,
    Chain,
    Partial,
    Searcher,
    Thinking,
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


def test_search_keeps_the_most_probable_chain(monkeypatch):
    checkpoint = load_checkpoint(ZOO / "sums")
    searcher = Searcher(checkpoint, Thinking())
    prompt = searcher._prompt(Problem(47, 23))
    good, bad = checkpoint.tokenizer.encode_ids(["1081", "1082"])
    end = checkpoint.tokenizer.end_id
    offers = iter([(bad, -2.0), (good, -0.1), *[(bad, -3.0)] * 40])

    def grow(self, partial):
        self.n_written += 5 * len(partial)
        grown = (next(offers) for _ in partial)
        return [Partial((*prompt, *ids, end), True, value) for ids, value in grown]

    monkeypatch.setattr(Searcher, "_grow", grow)
    assert searcher.beam([Problem(47, 23)], 1, 2) == (10, 1.0)


def test_steps_are_written_to_their_equals_sign_with_their_probability():
    checkpoint = load_checkpoint(ZOO / "sums")
    searcher = Searcher(checkpoint, Thinking(temperature=0.1))
    start = Partial(tuple(searcher._prompt(split().test[0])), False, 0.0)
    first, second = searcher._grow([start, start])
    assert first.ids[-1] == searcher.equals
    assert not first.is_done
    assert -5 < first.log_prob <= 0
    assert searcher.n_written == len(first.ids) + len(second.ids) - 2 * len(start.ids)
    (third,) = searcher._grow(searcher._grow([first]))
    assert third.is_done
    assert third.log_prob <= first.log_prob
    text = checkpoint.tokenizer.decode(list(third.ids[len(start.ids) : -1]))
    assert mark(split().test[0], text).product_share == 1
