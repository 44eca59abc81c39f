"""Softmax, normalise, entropy and the top_k of a distribution."""

import math

import numpy as np
import pytest

from headlight.model.analysis._distributions import entropy, log_sum_exp, normalise, top_k


def test_softmax_of_10_9_8_by_hand():
    logits = np.array([10.0, 9, 8])
    expected = [0.6652, 0.2447, 0.0900]
    np.testing.assert_allclose(np.exp(logits - log_sum_exp(logits)), expected, atol=5e-5)


def test_softmax_does_not_overflow():
    logits = np.array([1e30, -1e30], dtype=np.float32)
    assert np.exp(logits - log_sum_exp(logits)).tolist() == [1, 0]


def test_shares_sum_to_1_along_the_axis():
    table = np.array([[1.0, 3], [4, 1]])
    assert normalise(table).tolist() == [[0.25, 0.75], [0.8, 0.2]]
    assert normalise(table, axis=0).tolist() == [[0.2, 0.75], [0.8, 0.25]]


def test_shares_of_nothing_are_0():
    assert normalise(np.array([[0.0, 0], [0, 2]])).tolist() == [[0, 0], [0, 1]]


def test_entropy_is_ln_n_when_even_and_0_when_certain():
    found = entropy(np.array([[0.25] * 4, [0, 1, 0, 0]]))
    np.testing.assert_allclose(found, [math.log(4), 0])


def test_the_top_none_are_an_error():
    with pytest.raises(ValueError, match=r"top \(0\) must be at least 1"):
        top_k(np.array([1.0]), k=0)
