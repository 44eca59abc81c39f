"""Votes and search over toy chains by hand, and the limits that hold for any model."""

import numpy as np
import pytest
import torch

from headlight.model.arithmetic import Problem, mark, split
from headlight.model.checkpoint.loading import ZOO, load_checkpoint
from headlight.model.experiments import thinking
from headlight.model.experiments.chains import ValueHead
from headlight.model.experiments.thinking import (
    EXPERIMENT,
    Chain,
    Partial,
    Searcher,
    StepValue,
    Thinking,
    most_frequent,
    most_probable,
    needed,
)


def chain(answer, probability, text=None, n_tokens=3):
    return Chain(text or f"{answer}", answer, n_tokens, probability)


def test_of_equally_frequent_answers_the_first_counts_and_none_does_not():
    assert most_frequent([None, 3, 2, 2, 3]) == 3
    assert most_frequent([None, None]) is None


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
    return EXPERIMENT.result({"n_problems": 6, "n_chains": 3, "n_trained": 4, "model": "sums"})


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
    assert ((result["sure"].data > 0) & (result["sure"].data <= 1)).all()


@pytest.mark.parametrize("search", ["beam", "best_first"])
def test_search_keeps_the_chain_that_its_judge_prefers(search, monkeypatch):
    checkpoint = load_checkpoint(ZOO / "sums")
    problem = Problem(47, 23)
    prompt = thinking._prompt(checkpoint, problem)
    good, bad = checkpoint.tokenizer.encode_ids(["1081", "1082"])
    end = checkpoint.tokenizer.end_id
    offers = iter([(bad, 0.2), (good, 0.9), *[(bad, 0.1)] * 40])

    def grow(self, partial):
        self.n_written += 5 * len(partial)
        grown = (next(offers) for _ in partial)
        return [Partial((*prompt, *ids, end), True, value) for ids, value in grown]

    monkeypatch.setattr(Searcher, "_grow", grow)
    searcher = Searcher(checkpoint, StepValue(checkpoint.config.d_model), Thinking())
    sizes = (1, 2) if search == "beam" else (2,)
    assert getattr(searcher, search)([problem], *sizes) == (10, 1.0)


def test_steps_are_written_to_their_equals_sign_and_their_tokens_counted():
    checkpoint = load_checkpoint(ZOO / "sums")
    value = StepValue(checkpoint.config.d_model)
    value.fit(torch.zeros(1, 2, checkpoint.config.d_model), thinking.LAST, torch.zeros(1, 2))
    searcher = Searcher(checkpoint, value, Thinking(temperature=0.1))
    start = searcher._start(split().test[0])
    first, second = searcher._grow([start, start])
    assert first.ids[-1] == searcher.equals
    assert not first.is_done
    assert searcher.n_written == len(first.ids) + len(second.ids) - 2 * len(start.ids)
    (third,) = searcher._grow(searcher._grow([first]))
    assert third.is_done
    text = checkpoint.tokenizer.decode(list(third.ids[len(start.ids) : -1]))
    assert mark(split().test[0], text).product_share == 1


def test_the_value_prefers_what_led_to_right_answers_within_a_problem():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 8, 4, generator=generator)
    rewards = (x[:, :, 0] > 0).float()
    easy = torch.randn(60, 1, 4, generator=generator) * 5  # of the problem, not of its chains
    value = StepValue(4)
    value.fit(x + easy, thinking.LAST, rewards)
    good, bad = value.predict(
        torch.tensor([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]]) + value.usual[thinking.LAST], [3, 3]
    )
    assert good > 0.2
    assert bad < -0.2


def test_the_value_head_learns_the_reward_of_its_chains():
    torch.manual_seed(0)
    head, direction = ValueHead(8), torch.randn(8)
    for _ in range(5):
        x = torch.randn(40, 3, 8)
        x[:, :, :] = x[:, :1]
        head.fit(x, x[:, 0] @ direction + 2, torch.ones(40, 3))
    x = torch.randn(10, 1, 8)
    torch.testing.assert_close(head.predict(x)[:, 0], x[:, 0] @ direction + 2, atol=0.1, rtol=0)
