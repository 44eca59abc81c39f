"""The loss against a loop of letters, and dropout against its expectation."""

import math

import numpy as np
import pytest
import torch

from headlight.model.experiments import overfitting as module
from headlight.model.experiments.overfitting import EXPERIMENT, TEXT, Overfitting


def test_the_first_losses_are_those_of_a_loop_over_letters():
    parameters = Overfitting(is_tied=True)
    alphabet = sorted(set(TEXT))
    weights = {
        name: each.detach().numpy()
        for name, each in module._weights(parameters, len(alphabet)).items()
    }
    assert "scores" not in weights
    ids = [alphabet.index(letter) for letter in TEXT]
    bits = []
    for at in range(4, len(ids)):
        read = np.concatenate([weights["vectors"][each] for each in ids[at - 4 : at]])
        scores = np.maximum(0, read @ weights["first"]) @ weights["second"] @ weights["vectors"].T
        bits.append(math.log2(np.exp(scores).sum()) - scores[ids[at]] / math.log(2))
    result = EXPERIMENT.result({"is_tied": True, "steps": 1})
    cut = result["n_learned"].data - 4
    expected = [np.mean(bits[:cut]), np.mean(bits[cut:])]
    assert result["loss"].data[:, 0] == pytest.approx(expected)


def test_it_overfits_and_the_place_to_stop_is_before_the_end():
    learned, held = EXPERIMENT.result({"dropout": 0.0})["loss"].data
    assert learned[-1] < 0.5 < 3 < held.min() < held[-1] - 1
    assert 0 < held.argmin() < 20


def test_dropout_keeps_the_mean_and_doubles_what_is_left():
    generator = torch.Generator().manual_seed(0)
    x = torch.full((1, 20_000), 3.0, dtype=torch.float64)
    made = module.dropped(x, 0.5, generator)
    assert set(made.unique().tolist()) == {0.0, 6.0}
    assert made.mean().item() == pytest.approx(3.0, abs=0.1)
    result = EXPERIMENT.result({"steps": 1, "dropout": 0.5})
    assert result["mean"].data == pytest.approx(result["row"].data, rel=0.15)
