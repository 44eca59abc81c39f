"""The mean weight of a head by the distance from query to key."""

import numpy as np

from headlight.model.analysis.attention_by_distance import attention_by_distance, mean_by_distance

DECODER, ENCODER = "decoder.layers.0.self_attention", "encoder.layers.0.self_attention"


def test_a_causal_head_by_hand(make_trace):
    weights = [[[1, 0, 0], [0.4, 0.6, 0], [0.2, 0.3, 0.5]]]
    arrays = attention_by_distance(make_trace({f"{DECODER}.weights": weights}))
    assert arrays[DECODER].axes == ("head", "distance")
    assert arrays["decoder.distances"].data.tolist() == [0, 1, 2]
    # 0 back: 1, .6 and .5; 1 back: .4 and .3; 2 back: .2.
    np.testing.assert_allclose(arrays[DECODER].data, [[2.1 / 3, 0.35, 0.2]], rtol=1e-6)


def test_a_two_way_head_by_hand(make_trace):
    weights = [[[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.6, 0.4, 0.0]]]
    arrays = attention_by_distance(make_trace({f"{ENCODER}.weights": weights}))
    assert arrays["encoder.distances"].data.tolist() == [-2, -1, 0, 1, 2]
    np.testing.assert_allclose(arrays[ENCODER].data, [[0.2, 0.2, 1.3 / 3, 0.25, 0.6]], rtol=1e-6)


def test_the_means_weighted_by_their_numbers_of_queries_sum_to_one_a_query(
    make_trace, random_weights
):
    weights = random_weights(3, 6, 6, is_causal=True)
    means = attention_by_distance(make_trace({f"{DECODER}.weights": weights}))[DECODER].data
    np.testing.assert_allclose(means @ np.arange(6, 0, -1), 6, rtol=1e-5)


def test_cells_that_do_not_count_leave_no_mark():
    weights = np.array([[[9.0, 9], [0.25, 0.75]]])
    counted = np.array([[False, False], [True, True]])
    assert mean_by_distance(weights, counted).tolist() == [[0, 0.75, 0.25]]
