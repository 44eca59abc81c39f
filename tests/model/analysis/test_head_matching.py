"""Heads of two models matched by their maps."""

import itertools

import numpy as np
import pytest

from headlight.model.analysis.head_matching import head_correlations, match_heads


def maps(seed, n_heads=3, length=6):
    """Causal rows that sum to 1."""
    scores = np.random.default_rng(seed).normal(size=(n_heads, length, length))
    weights = np.exp(scores) * np.tri(length)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def test_the_similarity_is_pearsons_correlation_over_what_is_not_masked():
    first, second = [maps(0), maps(1, length=4)], [maps(2, 2), maps(3, 2, length=4)]
    found = head_correlations(first, second)
    assert found.shape == (3, 2)

    def flat(texts, head):
        return np.concatenate([text[head][np.tril_indices(len(text[head]))][1:] for text in texts])

    expected = np.corrcoef(flat(first, 1), flat(second, 0))[0, 1]
    assert found[1, 0] == pytest.approx(expected, abs=1e-9)


def test_shuffled_heads_are_found_again():
    texts = [maps(seed, 5) for seed in range(3)]
    order = [3, 0, 4, 1, 2]
    pairs = match_heads(head_correlations(texts, [text[order] for text in texts]))
    assert [pair.second for pair in pairs] == [order.index(head) for head in range(5)]
    assert [pair.correlation for pair in pairs] == pytest.approx([1] * 5)


def test_no_other_matching_has_a_greater_sum():
    correlations = np.random.default_rng(0).uniform(-1, 1, size=(4, 6))
    best = max(
        sum(correlations[row, column] for row, column in enumerate(columns))
        for columns in itertools.permutations(range(6), 4)
    )
    pairs = match_heads(correlations)
    assert sum(pair.correlation for pair in pairs) == pytest.approx(best)
    assert len({pair.second for pair in pairs}) == len(pairs) == 4


def test_a_head_that_never_changes_is_like_no_other():
    constant = np.full((1, 6, 6), 0.25, dtype=np.float32)
    assert head_correlations([constant], [maps(0)]).tolist() == [[0, 0, 0]]


def test_models_that_read_different_tokens_are_not_matched():
    with pytest.raises(ValueError, match="cut into the same tokens"):
        head_correlations([maps(0, length=5)], [maps(0, length=6)])
    with pytest.raises(ValueError, match="the same texts"):
        head_correlations([], [])
