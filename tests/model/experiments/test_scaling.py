"""Variance and saturation of dot products, against theory and autograd."""

import numpy as np
import pytest
import torch

from headlight.model.experiments.scaling import EXPERIMENT, jacobian_norm, softmax, widths_up_to


def test_products_of_unit_normals_have_variance_d():
    result = EXPERIMENT.result({"width": 256, "n_samples": 500, "n_keys": 32})
    undivided, divided = result["variance"].data
    widths = result["width"].data
    # 500 queries of 32 keys each: the standard error is below a tenth at every width.
    assert undivided / widths == pytest.approx(np.ones(9), rel=0.15)
    assert divided == pytest.approx(np.ones(9), rel=0.15)
    assert result["expected_variance"].data.tolist() == [widths.tolist(), [1] * 9]


def test_the_variance_grows_with_the_fourth_power_of_the_deviation():
    single, double = (EXPERIMENT.result({"deviation": value}) for value in (1.0, 2.0))
    assert double["variance"].data == pytest.approx(16 * single["variance"].data)
    assert double["expected_variance"].data == pytest.approx(16 * single["expected_variance"].data)


def test_without_the_division_the_gradient_vanishes_and_with_it_it_stays():
    result = EXPERIMENT.result({"width": 2048})
    undivided, divided = result["gradient"].data
    assert undivided[-1] < undivided[0] / 4
    assert divided[-1] == pytest.approx(divided[3], rel=0.1)
    assert result["greatest_weight"].data[0, -1] > 0.9


def test_the_gradient_is_autograds():
    scores = np.random.default_rng(3).normal(size=(4, 6)) * 3
    for row, norm in zip(scores, jacobian_norm(softmax(scores)), strict=True):
        jacobian = torch.autograd.functional.jacobian(
            lambda x: torch.softmax(x, dim=0), torch.from_numpy(row)
        )
        assert norm == pytest.approx(jacobian.norm().item(), rel=1e-9)


@pytest.mark.parametrize(
    ("scores", "divisor", "expected"),
    [
        ([10.0, 9.0, 8.0], 1.0, [0.6652, 0.2447, 0.0900]),
        ([100.0, 90.0, 80.0], 1.0, [0.99995, 0.00005, 0.00000]),
        ([10.0, 5.0, 1.0], 5.0, [0.6522, 0.2399, 0.1078]),
    ],
)
def test_the_softmax_of_chosen_scores_by_hand(scores, divisor, expected):
    result = EXPERIMENT.result({"scores": scores, "divisors": [divisor]})
    assert result["weights"].data[0] == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(("greatest", "expected"), [(1, [1]), (8, [1, 2, 4, 8]), (5, [1, 2, 4, 5])])
def test_widths_are_powers_of_two_and_the_greatest(greatest, expected):
    assert widths_up_to(greatest).tolist() == expected


def test_the_weights_gradient_is_that_of_the_divided_scores():
    result = EXPERIMENT.result({"scores": [10.0, 5.0, 1.0], "divisors": [5.0]})
    jacobian = torch.autograd.functional.jacobian(
        lambda x: torch.softmax(x, dim=0), torch.tensor([2.0, 1.0, 0.2], dtype=torch.float64)
    )
    assert result["weights_gradient"].data == pytest.approx([jacobian.norm().item()])


def test_every_mean_is_over_the_queries_drawn():
    """Recompute the statistics from the components, of the vectors' first d at every width d."""
    parameters = {"width": 6, "n_samples": 50, "n_keys": 3, "deviation": 1.5, "seed": 4}
    result = EXPERIMENT.result(parameters)
    rng = np.random.default_rng(4)
    drawn = [(rng.normal(0, 1.5, 6), rng.normal(0, 1.5, (3, 6))) for _ in range(50)]
    assert result["scaled"].data.tolist() == ["no", "yes"]
    for place, width in enumerate([1, 2, 4, 6]):
        products = np.stack([keys[:, :width] @ query[:width] for query, keys in drawn])
        for row, divisor in enumerate((1.0, width**0.5)):
            scores = products / divisor
            weights = torch.softmax(torch.from_numpy(scores), dim=1).numpy()
            for name, expected in {
                "variance": scores.var(),
                "entropy": -(weights * np.log2(weights)).sum(axis=1).mean(),
                "greatest_weight": weights.max(axis=1).mean(),
            }.items():
                assert result[name].data[row, place] == pytest.approx(expected), name
            assert result["example"].data[row, :, place] == pytest.approx(weights[0])
