"""The norms against PyTorch's."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from headlight.model.experiments.norms import EXPERIMENT

INPUTS = [[1.0, 2.0, 4.0], [0.5, -1.0, 3.0], [2.0, 0.0, 1.0], [5.0, 5.5, -7.0]]


def test_every_norm_is_torchs():
    result = EXPERIMENT.result({"inputs": INPUTS, "epsilon": 0.01})
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
        EXPERIMENT.result({"inputs": rows})["normalised"].data for rows in (INPUTS, moved)
    )
    difference = np.abs(after - before).max(axis=-1)  # (norm, token)
    assert (difference[[0, 2], 1:] == 0).all()
    assert (difference[1, 1:] > 0.1).all()


def test_a_batch_of_one_leaves_nothing_after_the_batch_norm():
    layer, batch, rms = EXPERIMENT.result({"inputs": INPUTS[:1]})["normalised"].data
    assert np.abs(batch).max() == 0
    assert np.abs(layer).min() > 0.1
    assert np.abs(rms).min() > 0.1


def test_rows_of_different_lengths_are_named():
    with pytest.raises(ValidationError, match="rows of inputs have different lengths"):
        EXPERIMENT.validate({"inputs": [[1.0, 2.0], [1.0, 2.0, 3.0]]})
