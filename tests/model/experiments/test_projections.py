"""Shared and separate projections against torch's attention, and against what can be proved."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError

from headlight.model.experiments.projections import EXAMPLES, EXPERIMENT


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("is_scaled", [True, False])
def test_both_variants_are_torchs_attention(example, is_scaled):
    result = EXPERIMENT.result({"example": example, "is_scaled": is_scaled, "steps": 1})
    given = EXAMPLES[example]
    x = torch.from_numpy(given.inputs)
    matrices = {
        "context": (given.query_weights, given.key_weights, given.value_weights),
        "shared_context": [given.query_weights + given.key_weights] * 3,
    }
    for name, three in matrices.items():
        q, k, v = (x @ torch.from_numpy(matrix) for matrix in three)
        expected = F.scaled_dot_product_attention(q, k, v, scale=None if is_scaled else 1.0)
        np.testing.assert_allclose(result[name].data, expected.numpy(), atol=1e-12)


@pytest.mark.parametrize("example", EXAMPLES)
def test_shared_scores_are_symmetric_and_of_two_tokens_one_prefers_itself(example):
    result = EXPERIMENT.result({"example": example, "steps": 1})
    scores = result["scores"].data[0]
    np.testing.assert_allclose(scores, scores.T, atol=1e-12)
    own = np.diag(scores)
    assert (own[:, None] + own >= 2 * scores - 1e-9).all()
    asymmetry = result["asymmetry"].data
    assert asymmetry[0] < 1e-12
    assert asymmetry[1] == pytest.approx(
        np.abs(result["scores"].data[1] - result["scores"].data[1].T).max()
    )
    assert asymmetry[1] > 1


@pytest.mark.parametrize(
    ("example", "asked", "shared", "separate"),
    [
        ("animal", "it", "it", "animal"),
        ("library", "how to bake?", "how to bake?", "Bread"),
        ("database", "experience?", "experience?", "Mira"),
        ("kitchen", "pasta", "chef", "cooked"),
    ],
)
def test_what_a_token_finds(example, asked, shared, separate):
    result = EXPERIMENT.result({"example": example, "steps": 1})
    tokens = result["token"].data.tolist()
    found = result["weights"].data[:, tokens.index(asked)].argmax(axis=-1)
    assert [tokens[at] for at in found] == [shared, separate]


def test_a_query_of_the_database_returns_a_value_that_is_no_key():
    result = EXPERIMENT.result({"example": "database", "steps": 1})
    values, context = result["values"].data, result["context"].data
    distances = np.linalg.norm(values - context[0], axis=1)
    assert distances.argmin() == 1
    assert not np.allclose(result["keys"].data[1], values[1])


def test_chef_finds_what_was_cooked_only_with_separate_projections():
    result = EXPERIMENT.result({"example": "kitchen", "steps": 1})
    tokens = result["token"].data.tolist()
    found = result["weights"].data[:, tokens.index("chef")].argmax(axis=-1)
    assert [tokens[at] for at in found] == ["chef", "cooked"]


def test_the_projections_of_chef_and_pasta_are_three_vectors():
    result = EXPERIMENT.result({"example": "kitchen", "steps": 1})
    for token in ("chef", "pasta"):
        at = result["token"].data.tolist().index(token)
        query, key, value = (result[name].data[at] for name in ("queries", "keys", "values"))
        for one, other in ((query, key), (key, value), (query, value)):
            assert np.linalg.norm(one - other) > 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_separate_projections_learn_the_task_and_shared_ones_stay_above_the_bound(seed):
    result = EXPERIMENT.result({"seed": seed, "steps": 300})
    shared, separate = result["loss"].data[:, -1]
    assert separate < 0.01
    assert shared == pytest.approx(result["least_loss"].data.item(), abs=1e-4)
    weights = result["task_weights"].data
    after = (np.arange(6) + 1) % 6
    assert (weights[1].argmax(axis=-1) == after).all()
    # Up one side of the circle and down the other: shared scores cannot grow all the way round.
    assert (weights[0].argmax(axis=-1) != after).any()


def test_the_loss_is_the_mean_of_the_bits_of_the_next_token():
    result = EXPERIMENT.result({"steps": 1, "seed": 4})
    generator = torch.Generator().manual_seed(4)
    w = torch.randn(1, 6, 6, generator=generator, dtype=torch.float64)[0] / math.sqrt(6)
    weights = (w @ w.T).softmax(dim=-1)
    expected = -torch.stack([weights[at, (at + 1) % 6].log2() for at in range(6)]).mean()
    assert result["loss"].data[0, 0] == pytest.approx(expected.item(), abs=1e-9)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inputs": [[1.0], [1.0, 2.0]]}, "rows of inputs have different lengths"),
        ({"shared_weights": [[1.0]]}, "shared_weights have 1 rows, but inputs have 4 dimensions"),
        ({"query_weights": [[1.0]] * 4}, "queries have 1 dimensions, but keys have 2"),
        ({"tokens": ["a", "b"]}, "there are 2 tokens, but 6 inputs"),
    ],
)
def test_numbers_that_do_not_fit_are_named(values, message):
    with pytest.raises(ValidationError, match=message):
        EXPERIMENT.validate(values)


def test_given_numbers_replace_those_of_the_example():
    inputs = [[1.0, 0.0], [0.0, 2.0]]
    unit = [[1.0, 0.0], [0.0, 1.0]]
    names = ("shared_weights", "query_weights", "key_weights", "value_weights")
    values = {"inputs": inputs, **dict.fromkeys(names, unit), "is_scaled": False, "steps": 1}
    result = EXPERIMENT.result(values)
    assert result["token"].data.tolist() == ["0", "1"]
    np.testing.assert_allclose(result["scores"].data, [[[1, 0], [0, 4]]] * 2)
