"""Attention rollout."""

import numpy as np

from headlight.model.analysis.rollout import rollout

SITE = "encoder.layers.{}.self_attention.weights"


def test_two_layers_by_hand(make_trace):
    # Layer 0, mean over heads: both look at token 1, so A_0 = ½(0 1; 0 1) + ½I = (½ ½; 0 1).
    # Layer 1: both look at token 0, so A_1 = (1 0; ½ ½), and A_1·A_0 = (½ ½; ¼ ¾).
    layer_0 = [[[1.0, 0], [1, 0]], [[-1.0, 2], [-1, 2]]]
    layer_1 = [[[1.0, 0], [1, 0]], [[1.0, 0], [1, 0]]]
    arrays = rollout(make_trace({SITE.format(0): layer_0, SITE.format(1): layer_1}))
    assert list(arrays) == ["encoder"]
    assert arrays["encoder"].axes == ("layer", "query", "key")
    assert arrays["encoder"].data.tolist() == [[[0.5, 0.5], [0, 1]], [[0.5, 0.5], [0.25, 0.75]]]


def test_rows_sum_to_1_and_the_future_stays_0(make_trace, random_weights):
    sites = [f"decoder.layers.{layer}.self_attention.weights" for layer in range(4)]
    weights = [random_weights(3, 7, 7, is_causal=True, seed=seed) for seed in range(4)]
    shares = rollout(make_trace(dict(zip(sites, weights, strict=True))))["decoder"].data
    np.testing.assert_allclose(shares.sum(axis=-1), 1, atol=1e-6)
    assert not np.triu(shares, k=1).any()


def test_rows_that_do_not_sum_to_1_are_divided_by_their_sum(make_trace):
    arrays = rollout(make_trace({SITE.format(0): [[[0.0, 0], [0.5, 0]]]}))
    np.testing.assert_allclose(arrays["encoder"].data, [[[1, 0], [1 / 3, 2 / 3]]], rtol=1e-6)
