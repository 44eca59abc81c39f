"""Routing statistics of a text, and the agreement of two layers' partitions of its tokens."""

import itertools
import math

import numpy as np
import pytest
import torch

from headlight.model.analysis.routing import (
    adjusted_mutual_information,
    expected_mutual_information,
    routing,
    top_choice,
)
from headlight.model.config import ExpertsConfig
from headlight.model.moe import load_balance_loss

PROBS, INDICES = "{}.layers.{}.experts.router_probs", "{}.layers.{}.experts.expert_indices"


@pytest.fixture
def by_hand(make_trace):
    """Four tokens, two experts; layer 3 does as layer 1 does, but its experts are swapped."""
    probs = np.array([[0.8, 0.2], [0.6, 0.4], [0.9, 0.1], [0.3, 0.7]])
    indices = np.array([[0], [0], [0], [1]])
    return make_trace(
        {
            PROBS.format("decoder", 1): probs,
            INDICES.format("decoder", 1): indices,
            PROBS.format("decoder", 3): probs[:, ::-1],
            INDICES.format("decoder", 3): 1 - indices,
        }
    )


def test_one_layer_by_hand(by_hand):
    arrays = routing(by_hand)
    assert arrays["decoder.layers"].data.tolist() == [1, 3]
    expected = {
        "load": [0.75, 0.25],
        "mean_probability": [0.65, 0.35],
        # In bits, since log₂ is ln/ln 2: h(¼), and the mean of h(.8), h(.6), h(.9) and h(.3).
        "load_entropy": 0.811278,
        "router_entropy": (0.721928 + 0.970951 + 0.468996 + 0.881291) / 4,
        "balance_loss": 2 * (0.75 * 0.65 + 0.25 * 0.35),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(arrays[f"decoder.{name}"].data[0], value, rtol=1e-5)


def test_layers_whose_experts_only_have_other_numbers_agree(by_hand):
    assert routing(by_hand)["decoder.agreement"].data.tolist() == [[1, 1], [1, 1]]


def test_the_top_choice_is_found_wherever_it_is_listed():
    probs = np.array([[[0.5, 0.4, 0.1], [0.5, 0.4, 0.1], [0.4, 0.5, 0.1], [0.6, 0.3, 0.1]]])
    # The last token was kept from its likeliest expert, 0.
    indices = np.array([[[0, 1], [1, 0], [0, 1], [2, 1]]])
    assert top_choice(probs, indices).tolist() == [[0, 0, 1, 1]]


def test_the_balance_loss_is_that_of_training_on_one_block(make_model, read):
    model = make_model(moe=ExpertsConfig(n_experts=4, top_k=2, layers=(0, 1)))
    trace = read(model, [5, 6, 7, 8, 9])
    arrays = routing(trace)
    for layer in (0, 1):
        probs = torch.tensor(trace.tensors[PROBS.format("decoder", layer)].data)
        indices = torch.tensor(trace.tensors[INDICES.format("decoder", layer)].data)
        loss = load_balance_loss(probs, indices).item()
        assert arrays["decoder.balance_loss"].data[layer] == pytest.approx(loss, rel=1e-5)


def test_missing_choices_are_an_error(make_trace):
    trace = make_trace(
        {
            PROBS.format("decoder", 0): [[0.5, 0.5]],
            PROBS.format("decoder", 1): [[0.5, 0.5]],
            INDICES.format("decoder", 0): [[1]],
        }
    )
    with pytest.raises(ValueError, match=r"lacks decoder\.layers\.1\.experts\.expert_indices"):
        routing(trace)


def mutual_information(first, second):
    """Σ p(a, b)·ln(p(a, b)/(p(a)·p(b))), counted pair by pair."""
    pairs = list(zip(first, second, strict=True))
    total = len(pairs)
    return sum(
        pairs.count((a, b))
        / total
        * math.log(total * pairs.count((a, b)) / (first.count(a) * second.count(b)))
        for a, b in set(pairs)
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 0, 1, 1, 2, 2, 2), (0, 0, 0, 1, 1, 1, 2)),
        ((0, 1, 1, 1, 1, 1), (0, 0, 0, 1, 1, 1)),
        ((0, 1, 2, 3, 4), (0, 0, 0, 0, 1)),
    ],
)
def test_chance_is_the_mean_over_every_shuffle(first, second):
    shuffles = [mutual_information(first, other) for other in itertools.permutations(second)]
    chance = expected_mutual_information(np.bincount(first), np.bincount(second))
    assert chance == pytest.approx(sum(shuffles) / len(shuffles))


def test_two_halves_across_each_other_by_hand():
    # I = 0. Of the shuffles a third gives the same halves, I = ln 2, so E[I] = ln 2/3:
    # (0 − ln 2/3)/(ln 2 − ln 2/3) = −1/2.
    first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert adjusted_mutual_information(first, second) == pytest.approx(-0.5)


@pytest.mark.parametrize("same", [[0, 0, 0], [0, 1, 2], [5]])
def test_divisions_that_leave_no_room_for_chance_agree(same):
    assert adjusted_mutual_information(np.array(same), np.array(same)) == 1
