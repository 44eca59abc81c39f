"""The formula against the product's own quantization."""

import numpy as np
import pytest

from headlight.model.checkpoint.loading import load
from headlight.model.experiments.rounding import EXPERIMENT
from headlight.model.quantization.affine import quantize

NAME = "decoder.layers.2.self_attention.value_projection.weight"


@pytest.mark.parametrize("per", ["row", "tensor"])
@pytest.mark.parametrize("bits", [2, 5, 8])
def test_the_numbers_are_those_of_the_quantization_of_the_product(bits, per):
    values = {"matrix": "values", "layer": 2, "row": 7, "bits": bits, "per": per}
    result = EXPERIMENT.result(values)
    matrix = load("stories").model.get_parameter(NAME)
    made = quantize(matrix, bits, "channel" if per == "row" else "tensor")
    at = 7 if per == "row" else 0
    assert result["scale"].data == pytest.approx(made.scales[at].item(), rel=1e-6)
    assert result["zero"].data == made.zero_points[at].item()
    assert (result["whole"].data == made.values[7].numpy()).mean() > 0.99  # float32 rounds halves
    change = made.dequantize()[7] - matrix[7]
    place = 0 if per == "row" else 1
    assert result["error"].data[place, bits - 2] == pytest.approx(
        change.square().mean().sqrt().item(), rel=1e-3
    )
    assert np.abs(result["restored"].data - result["weight"].data).max() <= 0.51 * made.scales[at]
