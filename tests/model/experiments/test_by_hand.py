"""The examples against numbers that are printed or were recomputed for the reference."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from headlight.model.experiments.by_hand import EXPERIMENT
from headlight.model.experiments.by_hand_examples import examples


def result(**values):
    return EXPERIMENT.result(values)


def rows(text):
    return np.array([[float(number) for number in line.split()] for line in text.split("|")])


def test_the_fox_without_weights():
    arrays = result(example="fox")
    assert arrays["scores"].data[0] == pytest.approx(rows(".94 .31 .53 .59 .70 .98")[0], abs=5e-3)
    expected = rows(".2115 .1126 .1404 .1490 .1664 .2201")[0]
    assert arrays["weights"].data[0] == pytest.approx(expected, abs=6e-5)
    expected = rows(
        ".5927 .3357 .5370|.5747 .3521 .4870|.6135 .3486 .4983|"
        ".6276 .3487 .4995|.6212 .3434 .5133|.6360 .3432 .5222"
    )
    assert arrays["context"].data == pytest.approx(expected, abs=6e-5)


def test_the_fox_with_random_projections():
    arrays = result(example="fox_projected")
    for name, expected in {
        "queries": ".2693 .9821 .3865 .8455",
        "keys": ".8146 .7583 .7444 1.1370",
        "values": ".9083 .8406 1.0927 .7955",
        "products": "2.2131 1.2207 1.5923 1.7274 1.7276 2.5506",
        "weights": ".1963 .1195 .1439 .1540 .1540 .2324",
        "context": ".8516 .7803 .9675 .9944",
    }.items():
        assert arrays[name].data[0] == pytest.approx(rows(expected)[0], abs=6e-5), name
    assert arrays["divisor"].data == 2


def test_the_fox_with_linear_layers():
    expected = rows(
        "-.2117 .1381 .5026 .2667|-.2066 .1430 .4978 .2678|-.2092 .1417 .5006 .2677|"
        "-.2098 .1417 .5015 .2679|-.2113 .1390 .5024 .2670|-.2119 .1408 .5038 .2679"
    )
    assert result(example="fox_linear")["context"].data == pytest.approx(expected, abs=6e-5)


def test_the_animal_shows_what_is_printed_beside_what_its_formula_gives():
    arrays = result(example="animal")
    assert arrays["scores"].data[0] == pytest.approx([0.69, 0.31, 0.50, 0.65])
    expected = rows(".2881 .1970 .2382 .2768")[0]
    assert arrays["weights"].data[0] == pytest.approx(expected, abs=6e-5)
    assert arrays["context"].data[0] == pytest.approx([0.6354, 0.4096], abs=6e-5)
    assert arrays["printed_weights"].data.tolist() == [[0.35, 0.15, 0.20, 0.30]]
    assert arrays["printed_context"].data.tolist() == [[0.678, 0.364]]
    assert (arrays["query"].data.tolist(), arrays["key"].data[0]) == (["it"], "animal")


def test_the_cat():
    arrays = result(example="cat")
    chased = arrays["key"].data.tolist().index("chased")
    for name, expected in {
        "queries": ".75 0 .75 0",
        "scores": ".54 2.295 1.35 .54 2.025",
        "weights": ".0692 .4003 .1556 .0692 .3056",
        "context": "1.1659 .5998 1.1475 .6237",
    }.items():
        assert arrays[name].data[chased] == pytest.approx(rows(expected)[0], abs=6e-5), name


@pytest.mark.parametrize("example", ["life", "fox", "fox_projected", "fox_linear", "cat"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_pytorchs(example, is_causal):
    arrays = result(example=example, is_causal=is_causal)
    queries, keys, values = (
        torch.from_numpy(arrays[name].data) for name in ("queries", "keys", "values")
    )
    expected = nn.functional.scaled_dot_product_attention(
        queries, keys, values, is_causal=is_causal, scale=1 / arrays["divisor"].data.item()
    )
    assert arrays["context"].data == pytest.approx(expected.numpy())
    assert arrays["weights"].data.sum(axis=1) == pytest.approx(1)


def test_a_changed_number_is_recomputed():
    inputs = examples()["fox"].given["inputs"].copy()
    inputs[0, 0] = 0.5
    arrays = result(example="fox", inputs=inputs.tolist())
    assert arrays["scores"].data == pytest.approx(inputs @ inputs.T)
    keys = result(example="animal", keys=[[0.0, 0.0]] * 4)
    assert keys["weights"].data[0] == pytest.approx([0.25] * 4)
    assert "printed_weights" not in keys


def test_inputs_of_another_number_of_tokens_are_numbered():
    arrays = result(example="fox", inputs=[[1.0, 0.0], [0.0, 1.0]])
    assert arrays["key"].data.tolist() == ["0", "1"]
    arrays = result(example="fox", inputs=[[1.0, 0.0], [0.0, 1.0]], tokens=["a", "b"])
    assert arrays["query"].data.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inputs": [[1.0], [1.0, 2.0]]}, "the rows of inputs have different lengths"),
        ({"inputs": [[1.0, 2.0]]}, "query_weights have 3 rows, but inputs have 2 dimensions"),
        ({"query_weights": [[1.0]] * 3}, "queries have 1 dimensions, but keys have 2"),
        ({"values": [[1.0]]}, "there are 1 values, but 6 keys"),
        ({"tokens": ["a"]}, "there are 1 tokens, but 6 keys"),
        ({"queries": [[1.0, 2.0]] * 7, "is_causal": True}, "6 keys allow no more queries"),
    ],
)
def test_matrices_that_do_not_fit_are_rejected(values, message):
    with pytest.raises(ValueError, match=message):
        result(**values)


def test_life_is_short_is_scaled_attention_with_drawn_matrices():
    arrays = result()
    drawn = torch.rand(3, 3, 2, generator=torch.Generator().manual_seed(123)).numpy()
    for name, matrix in zip(("query", "key", "value"), drawn, strict=True):
        assert arrays[f"{name}_weights"].data == pytest.approx(matrix, abs=1e-6)
    queries, keys, values = (arrays["inputs"].data @ matrix.astype(float) for matrix in drawn)
    assert arrays["products"].data == pytest.approx(queries @ keys.T, abs=1e-5)
    weights = torch.softmax(torch.from_numpy(queries @ keys.T / math.sqrt(2)), dim=1).numpy()
    assert arrays["context"].data == pytest.approx(weights @ values, abs=1e-5)


def test_scores_and_weights_that_are_given_replace_what_is_computed():
    scores = [[1.0, 2.0, 0.0, 0.5]]
    arrays = result(example="animal", scores=scores)
    powers = np.exp(scores[0])
    assert arrays["weights"].data[0] == pytest.approx(powers / powers.sum())
    assert arrays["products"].data[0, 0] == pytest.approx(0.69)
    weights = [[0.0, 0.0, 2.0, 1.0]]
    arrays = result(example="animal", weights=weights)
    assert arrays["context"].data[0] == pytest.approx([2 * 0.48 + 0.82, 2 * 0.52 + 0.25])
    assert arrays["scores"].data[0, 0] == pytest.approx(0.69)
    assert "printed_weights" not in arrays
    hidden = result(example="fox", scores=[[1.0] * 6] * 6, is_causal=True)["weights"].data
    assert hidden[2] == pytest.approx([1 / 3] * 3 + [0] * 3)


def test_a_context_that_is_given_is_returned_beside_that_of_the_formula():
    arrays = result(example="animal", context=[[0.678, 0.364]])
    assert arrays["context"].data.tolist() == [[0.678, 0.364]]
    assert arrays["formula_context"].data[0] == pytest.approx([0.6354, 0.4096], abs=6e-5)
    assert "formula_context" not in result(example="animal")


@pytest.mark.parametrize(
    ("name", "needed"),
    [("scores", "4 keys"), ("weights", "4 keys"), ("context", "2 dimensions of the values")],
)
def test_results_that_are_given_need_the_shape_of_the_computed_ones(name, needed):
    message = f"{name}: 1 rows of 3, but 1 queries and {needed} need as many rows and columns"
    with pytest.raises(ValueError, match=message):
        result(example="animal", **{name: [[1.0, 2.0, 3.0]]})


def test_several_heads_are_torchs_multi_head_attention():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(5, 4))
    w_q, w_k, w_v, w_o = rng.normal(size=(4, 4, 4))
    parameters = {
        "inputs": x.tolist(),
        "query_weights": w_q.tolist(),
        "key_weights": w_k.tolist(),
        "value_weights": w_v.tolist(),
        "output_weights": w_o.tolist(),
        "n_heads": 2,
        "head": 1,
        "is_scaled": True,
    }
    result = EXPERIMENT.result(parameters)
    reference = torch.nn.MultiheadAttention(4, 2, bias=False, batch_first=True).double()
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.from_numpy(np.concatenate([w_q, w_k, w_v], axis=1).T))
        reference.out_proj.weight.copy_(torch.from_numpy(w_o.T))
        made = torch.from_numpy(x)[None]
        output, weights = reference(made, made, made, average_attn_weights=False)
    np.testing.assert_allclose(result["output"].data, output[0].numpy(), atol=1e-12)
    np.testing.assert_allclose(result["head_weights"].data, weights[0].numpy(), atol=1e-12)
    np.testing.assert_array_equal(result["weights"].data, result["head_weights"].data[1])
    np.testing.assert_array_equal(result["context"].data, result["joined"].data[:, 2:])
    assert result["divisor"].data == pytest.approx(2**0.5)


def test_one_head_has_no_output_matrix_unless_it_is_given():
    assert "output" not in EXPERIMENT.result({"example": "cat"})
    unit = np.eye(4).tolist()
    result = EXPERIMENT.result({"example": "cat", "output_weights": unit})
    np.testing.assert_allclose(result["output"].data, result["context"].data)
    drawn = EXPERIMENT.result({"example": "life", "n_heads": 2})
    assert drawn["output"].data.shape == (6, 3)


def test_what_is_typed_is_of_the_head_that_is_shown():
    given = [[0.5, 0.25, 0.25]]
    result = EXPERIMENT.result(
        {
            "queries": [[1.0, 2.0]],
            "keys": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
            "values": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
            "example": "animal",
            "tokens": ["a", "b", "c"],
            "n_heads": 2,
            "head": 1,
            "weights": given,
        }
    )
    assert result["head_weights"].data[1].tolist() == given
    assert result["head_weights"].data[0].tolist() != given
    assert result["joined"].data[0, 1] == 0.5 * 2 + 0.25 * 4 + 0.25 * 6


def test_embeddings_give_the_numbers_of_it():
    bare, embedded = (EXPERIMENT.result({"example": f"animal{more}"}) for more in ("", "_embedded"))
    np.testing.assert_allclose(embedded["keys"].data, bare["keys"].data)
    np.testing.assert_allclose(embedded["values"].data, bare["values"].data)
    np.testing.assert_allclose(embedded["queries"].data[2], bare["queries"].data[0])
    np.testing.assert_allclose(embedded["weights"].data[2], bare["weights"].data[0])
    assert embedded["weights"].data[2] == pytest.approx([0.2881, 0.1970, 0.2382, 0.2768], abs=5e-5)
    assert embedded["printed_weights"].data[2].tolist() == [0.35, 0.15, 0.20, 0.30]
    assert np.isnan(embedded["printed_weights"].data[[0, 1, 3]]).all()


def test_a_score_of_ten_divided_by_25_has_not_the_printed_weight():
    result = EXPERIMENT.result({"example": "divided"})
    assert result["weights"].data[0] == pytest.approx([0.3974, 0.3254, 0.2773], abs=5e-5)
    assert result["printed_weights"].data[0, 0] == 0.422


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_heads": 2, "example": "fox"}, "must divide the 3 dimensions of the keys"),
        ({"head": 1}, r"head \(1\) must be below n_heads \(1\)"),
        ({"output_weights": [[1.0]]}, "output_weights have 1 rows, but values have 2"),
        ({"output_weights": [[1.0], [1.0, 2.0]]}, "rows of output_weights have different lengths"),
    ],
)
def test_heads_that_do_not_fit_are_named(values, message):
    with pytest.raises(ValidationError, match=message):
        EXPERIMENT.validate(values)
