"""The norms against PyTorch's, and the error of the batch norm against theory."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from headlight.model.experiments.norms import EXPERIMENT

INPUTS = [[1.0, 2.0, 4.0], [0.5, -1.0, 3.0], [2.0, 0.0, 1.0], [5.0, 5.5, -7.0]]


def test_every_norm_is_torchs():
    result = EXPERIMENT.result({"inputs": INPUTS, "batch": 2, "epsilon": 0.01})
    x = torch.tensor(INPUTS, dtype=torch.float64)
    references = [
        nn.LayerNorm(3, eps=0.01).double(),
        nn.BatchNorm1d(3, eps=0.01).double(),
        nn.RMSNorm(3, eps=0.01).double(),
    ]
    for made, reference in zip(result["normalised"].data, references, strict=True):
        np.testing.assert_allclose(made, reference(x).detach(), atol=1e-12)
    assert result["token_mean"].data == pytest.approx(x.mean(dim=1).tolist())
    assert result["feature_deviation"].data == pytest.approx(x.std(dim=0, correction=0).tolist())


def test_another_token_moves_only_what_the_batch_norm_makes():
    moved = [[*INPUTS[0][:2], 40.0], *INPUTS[1:]]
    before, after = (
        EXPERIMENT.result({"inputs": rows, "batch": 1})["normalised"].data
        for rows in (INPUTS, moved)
    )
    difference = np.abs(after - before).max(axis=-1)  # (norm, token)
    assert (difference[[0, 2], 1:] == 0).all()
    assert (difference[1, 1:] > 0.1).all()


def test_a_batch_of_one_leaves_nothing_and_large_ones_follow_the_theory():
    result = EXPERIMENT.result({"batch": 1024, "width": 64, "n_batches": 60, "seed": 3})
    layer, batch, rms = result["error"].data
    assert result["batch_size"].data.tolist() == [2**power for power in range(11)]
    assert np.abs(layer).max() < 1e-12
    assert np.abs(rms).max() < 1e-12
    # All numbers become 0, so the error is that of a normal deviation of 1.
    assert batch[0] == pytest.approx(1, abs=0.05)
    assert batch[5:] == pytest.approx(result["expected_error"].data[5:], rel=0.1)
    assert (np.diff(batch) < 0).all()


def test_the_largest_batch_is_as_asked():
    result = EXPERIMENT.result({"batch": 5, "width": 4, "n_batches": 10})
    assert result["batch_size"].data.tolist() == [1, 2, 4, 5]


def test_rows_of_different_lengths_are_named():
    with pytest.raises(ValidationError, match="rows of inputs have different lengths"):
        EXPERIMENT.validate({"inputs": [[1.0, 2.0], [1.0, 2.0, 3.0]]})
