"""Two runs that differ only in the rate of their first steps."""

import numpy as np
import pytest

from headlight.model.experiments.warm_up import EXPERIMENT, factor

SMALL = {"n_layers": 1, "d_model": 16, "batch": 8}


def test_the_rate_rises_to_its_peak_in_equal_steps():
    assert [factor(step, 4) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    result = EXPERIMENT.result({**SMALL, "steps": 6, "warmup": 4, "learning_rate": 0.01})
    warm, plain = result["rate"].data
    assert warm == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])
    assert plain.tolist() == [0.01] * 6


def test_both_runs_begin_with_equal_weights_and_data():
    result = EXPERIMENT.result({**SMALL, "steps": 2, "warmup": 2})
    assert result["loss"].data[0, 0] == result["loss"].data[1, 0]
    assert result["accuracy"].data[0, 0] == result["accuracy"].data[1, 0]
    assert result["loss"].data[0, 1] != result["loss"].data[1, 1]


def test_a_first_step_of_adam_goes_as_far_as_its_rate():
    """Corrected for their bias, m is the gradient and v its square: weights move by the rate."""
    result = EXPERIMENT.result({**SMALL, "steps": 2, "warmup": 2, "learning_rate": 1e-3})
    warm, plain = result["update"].data[:, 0]
    assert plain == pytest.approx(2 * warm, rel=1e-3)


def test_a_warm_up_of_one_step_is_none():
    result = EXPERIMENT.result({**SMALL, "steps": 3, "warmup": 1})
    np.testing.assert_array_equal(result["loss"].data[0], result["loss"].data[1])


def test_a_small_network_learns():
    result = EXPERIMENT.result({"n_layers": 1, "steps": 150, "warmup": 30, "norm_place": "pre"})
    loss = result["loss"].data
    assert (loss[:, -10:].mean(axis=1) < 0.75 * loss[:, 0]).all()
    assert (result["accuracy"].data[:, -1] > 0.3).all()
