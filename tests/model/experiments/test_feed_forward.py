"""Networks without a function are one matrix; with one they bend."""

import numpy as np
import pytest

from headlight.model.experiments.feed_forward import EXPERIMENT


@pytest.fixture(scope="module")
def wave():
    return EXPERIMENT.result({"steps": 300})


def test_two_matrices_without_a_function_are_one(wave):
    x = wave["x"].data
    matrix, bias = wave["merged_matrix"].data
    np.testing.assert_allclose(wave["merged"].data, x * matrix + bias, atol=1e-12)
    np.testing.assert_allclose(wave["output"].data[0], wave["merged"].data, atol=1e-12)
    assert wave["merged_difference"].data < 1e-12


def test_without_a_function_the_best_line_is_reached_and_nothing_better(wave):
    x, target = wave["x"].data, wave["target"].data
    slope, offset = np.polyfit(x, target, 1)
    least = ((slope * x + offset - target) ** 2).mean()
    losses = wave["loss"].data
    assert losses[0] == pytest.approx(least, rel=0.02)
    assert losses[0] >= least * (1 - 1e-9)
    assert (losses[1:] < least / 2).all()


def test_a_network_with_relu_is_straight_between_its_kinks(wave):
    x, relu = wave["x"].data, wave["output"].data[1]
    bend = np.abs(np.diff(relu, 2))
    kinks = wave["kinks"].data
    has_kink = np.array(
        [((kinks >= left) & (kinks <= right)).any() for left, right in zip(x, x[2:], strict=False)]
    )
    assert bend[~has_kink].max() < 1e-9
    assert bend[has_kink].max() > 1e-3


def test_a_line_needs_no_function():
    losses = EXPERIMENT.result({"target": "line", "steps": 300})["loss"].data
    assert losses[0] < 1e-3
