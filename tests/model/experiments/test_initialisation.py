"""The growth of numbers by layer against theory, and the deviations that PyTorch draws."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from headlight.model.experiments.initialisation import EXPERIMENT, SCHEMES, deviation

WIDE = {"n_inputs": 256, "width": 256, "n_layers": 4}


@pytest.mark.parametrize(
    ("scheme", "draw"),
    [("xavier", nn.init.xavier_normal_), ("kaiming", nn.init.kaiming_normal_)],
)
def test_deviations_are_those_that_torch_draws(scheme, draw):
    torch.manual_seed(0)
    matrix = torch.empty(300, 200)  # of 200 inputs and 300 outputs
    draw(matrix, **({"nonlinearity": "relu"} if scheme == "kaiming" else {}))
    assert deviation(scheme, 200, 300) == pytest.approx(matrix.std().item(), rel=0.02)


def test_without_a_function_each_layer_multiplies_by_the_root_of_the_width():
    result = EXPERIMENT.result({**WIDE, "activation": "none"})
    size = dict(zip(SCHEMES, result["deviation"].data, strict=True))
    ratios = {scheme: of[1:] / of[:-1] for scheme, of in size.items()}
    assert ratios["unit"] == pytest.approx([16] * 4, rel=0.15)
    assert ratios["small"] == pytest.approx([0.16] * 4, rel=0.15)
    assert ratios["xavier"] == pytest.approx([1] * 4, rel=0.15)
    assert ratios["kaiming"] == pytest.approx([math.sqrt(2)] * 4, rel=0.15)


def test_relu_halves_the_square_and_kaiming_makes_up_for_it():
    result = EXPERIMENT.result(WIDE)
    size = dict(zip(SCHEMES, result["deviation"].data, strict=True))
    # ReLU of a normal deviate: mean square 1/2, mean 1/√(2π), so variance 1/2 − 1/(2π).
    after_one = math.sqrt(1 / 2 - 1 / (2 * math.pi))
    assert size["unit"][1] == pytest.approx(16 * after_one, rel=0.05)
    assert size["kaiming"][1:] == pytest.approx([math.sqrt(2) * after_one] * 4, rel=0.25)
    assert size["unit"][2] / size["unit"][1] == pytest.approx(16 / math.sqrt(2), rel=0.2)


def test_the_default_numbers_of_unit_normals_explode():
    result = EXPERIMENT.result({})
    unit, small, xavier, kaiming = result["deviation"].data
    assert 1.5 < unit[1] < 2.2
    assert unit[2] > 10
    assert unit[6] > 1e4
    assert small[6] < 1e-6
    assert 0.5 < kaiming[6] < 2
    assert xavier[6] < 0.2


def test_the_gradient_is_the_product_of_the_matrices_without_a_function():
    result = EXPERIMENT.result(
        {"n_inputs": 3, "width": 4, "n_layers": 2, "activation": "none", "seed": 5}
    )
    drawn = [
        np.random.default_rng([5, 1 + at]).normal(size=shape)
        for at, shape in enumerate([(3, 4), (4, 4)])
    ]
    readout = np.random.default_rng([5, 100]).normal(size=(4, 1)) / 2
    expected = [drawn[0] @ drawn[1] @ readout, drawn[1] @ readout, readout]
    sizes = [math.sqrt((each**2).mean()) for each in expected]
    assert result["gradient"].data[0] == pytest.approx(sizes)
