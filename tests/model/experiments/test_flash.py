"""Attention block by block equals attention, whatever the blocks."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from headlight.model.experiments.flash import EXPERIMENT


@pytest.mark.parametrize("block", [1, 3, 4, 16, 64])
def test_the_last_block_gives_torchs_attention(block):
    result = EXPERIMENT.result({"block": block, "n_keys": 16, "seed": 2})
    scores = torch.from_numpy(result["score"].data)[None]
    values = torch.from_numpy(result["values"].data)
    # Queries of 1 and keys of one number: their products are the scores.
    expected = F.scaled_dot_product_attention(
        torch.ones(1, 1, dtype=torch.float64), scores.T, values, scale=1.0
    )
    np.testing.assert_allclose(result["output"].data[-1], expected[0], atol=1e-12)
    np.testing.assert_allclose(result["context"].data, expected[0], atol=1e-12)
    assert result["error"].data[-1] < 1e-12
    assert result["step"].data[-1] == 16


def test_after_each_block_it_is_attention_over_the_keys_read_so_far():
    result = EXPERIMENT.result({"block": 4, "n_keys": 10, "seed": 5})
    scores, values = result["score"].data, result["values"].data
    assert result["step"].data.tolist() == [4, 8, 10]
    for place, read in enumerate([4, 8, 10]):
        weights = torch.from_numpy(scores[:read]).softmax(0).numpy()
        partial = result["partial_weights"].data[place]
        np.testing.assert_allclose(partial[:read], weights, atol=1e-12)
        assert (partial[read:] == 0).all()
        np.testing.assert_allclose(result["output"].data[place], weights @ values[:read])
        greatest = scores[:read].max()
        assert result["greatest"].data[place] == greatest
        assert result["total"].data[place] == pytest.approx(np.exp(scores[:read] - greatest).sum())


def test_what_was_summed_is_rescaled_when_the_maximum_rises():
    result = EXPERIMENT.result({"scores": [1.0, 3.0, 2.0], "block": 1})
    assert result["factor"].data == pytest.approx([0, np.exp(-2), 1])
    assert result["block_greatest"].data.tolist() == [1, 3, 2]
    assert result["total"].data == pytest.approx([1, np.exp(-2) + 1, np.exp(-2) + 1 + np.exp(-1)])


def test_without_the_maximum_large_scores_overflow():
    result = EXPERIMENT.result({"scores": [800.0, 799.0, 0.0]})
    assert np.isnan(result["naive_context"].data).all()
    assert result["error"].data[-1] < 1e-12
    weights = result["weights"].data
    assert weights == pytest.approx([1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0])
    small = EXPERIMENT.result({"scores": [8.0, 7.0, 0.0]})
    np.testing.assert_allclose(small["naive_context"].data, small["context"].data)


def test_whole_scores_grow_with_the_square_and_blocks_stay():
    result = EXPERIMENT.result({})
    length = result["length"].data
    assert (result["whole_numbers"].data == length.astype(float) ** 2).all()
    assert len(set(result["block_numbers"].data.tolist())) == 1
