"""The softmax and plain shares, against PyTorch, by hand, and at their limits."""

import numpy as np
import pytest
import torch

from headlight.model.experiments.softmax import EXPERIMENT, normalised


def test_plain_shares_and_the_softmax_of_ten_five_and_one():
    result = EXPERIMENT.result({"scores": [10.0, 5.0, 1.0]})
    assert result["normalised"].data == pytest.approx([0.625, 0.3125, 0.0625])
    assert result["untempered"].data == pytest.approx([0.9932, 0.0067, 0.0001], abs=5e-5)


def test_the_weights_are_torchs_softmax_at_every_temperature():
    scores = [3.0, -2.0, 0.5]
    result = EXPERIMENT.result({"scores": scores, "temperature": 2.5, "shift": 1.0})
    x = torch.tensor(scores, dtype=torch.float64)
    assert result["score"].data.tolist() == [4.0, -1.0, 1.5]
    np.testing.assert_allclose(result["weights"].data, (x / 2.5).softmax(0), rtol=1e-12)
    for place, temperature in enumerate(result["temperature"].data):
        expected = (x / temperature).softmax(0)
        np.testing.assert_allclose(result["by_temperature"].data[:, place], expected, atol=1e-12)
        entropy = torch.distributions.Categorical(probs=expected).entropy() / np.log(2)
        assert result["entropy"].data[place] == pytest.approx(entropy.item(), abs=1e-6)


def test_a_shift_leaves_the_softmax_and_changes_plain_shares():
    result = EXPERIMENT.result({"scores": [10.0, 5.0, 1.0]})
    by_shift = result["softmax_by_shift"].data
    assert np.abs(by_shift - by_shift[:, :1]).max() < 1e-12
    shifts = result["shift"].data.tolist()
    plain = result["normalised_by_shift"].data
    assert plain[:, shifts.index(0.0)] == pytest.approx([0.625, 0.3125, 0.0625])
    assert plain[:, shifts.index(-10.0)] == pytest.approx([0, 5 / 14, 9 / 14])


def test_negative_scores_have_negative_shares_and_positive_weights():
    result = EXPERIMENT.result({"scores": [4.0, -2.0]})
    assert result["normalised"].data.tolist() == [2.0, -1.0]
    assert (result["weights"].data > 0).all()
    assert result["weights"].data.sum() == pytest.approx(1)


def test_scores_that_sum_to_zero_have_no_shares():
    assert np.isnan(normalised(np.array([1.0, -1.0]))).all()
    assert np.isfinite(normalised(np.array([1.0, -0.5]))).all()
