"""GPTQ next to rounding, and next to the update of one column at a time."""

import pytest
import torch
from torch import nn

from headlight.model.quantization.affine import Quantization, quantize
from headlight.model.quantization.gptq import (
    DAMPING,
    LayerError,
    by_kind,
    by_layer,
    calibrate,
    gptq,
)


def correlated(n_rows=400, n_inputs=12):
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(n_inputs, n_inputs, generator=generator)
    return (torch.randn(n_rows, n_inputs, generator=generator) @ mixing).double()


def error(weight, numbers, inputs):
    return float((inputs @ (numbers.dequantize().double() - weight).T).square().sum())


@pytest.mark.parametrize("bits", [2, 3, 4])
@pytest.mark.parametrize("per", ["channel", "tensor"])
def test_outputs_change_less_than_by_rounding(bits, per):
    inputs = correlated()
    weight = torch.randn(8, 12, generator=torch.Generator().manual_seed(1)).double()
    quantization = Quantization(bits=bits, per=per)
    mine = gptq(weight, inputs.T @ inputs, quantization)
    rounded = quantize(weight.float(), bits, per)
    assert error(weight, mine, inputs) < error(weight, rounded, inputs)
    assert int(mine.values.max()) < 2**bits
    assert torch.equal(mine.scales, rounded.scales)


def test_with_independent_inputs_it_is_rounding():
    weight = torch.randn(6, 9, generator=torch.Generator().manual_seed(1)).double()
    mine = gptq(weight, torch.eye(9).double(), Quantization(bits=3))
    assert torch.equal(mine.values, quantize(weight.float(), 3).values)


def test_each_step_is_the_best_answer_to_the_rounding_before():
    """Solve the least-squares problem of the columns that are left after each rounding."""
    inputs = correlated(60, 5)
    weight = torch.randn(3, 5, generator=torch.Generator().manual_seed(2)).double()
    moments = inputs.T @ inputs
    hessian = 2 * moments
    hessian = hessian + DAMPING * hessian.diagonal().mean() * torch.eye(5).double()
    order = moments.diagonal().argsort(descending=True).tolist()
    known = quantize(weight.float(), 3)
    scales, zeros = known.scales.double(), known.zero_points.double()
    left, current = list(order), weight.clone()
    values = torch.empty_like(weight)
    while left:
        column, rest = left[0], left[1:]
        whole = (current[:, column] / scales + zeros).round().clamp(0, 7)
        values[:, column] = whole
        change = scales * (whole - zeros) - current[:, column]
        if rest:
            block = hessian[rest][:, rest]
            current[:, rest] -= (
                change[:, None] * torch.linalg.solve(block, hessian[rest, column])[None]
            )
        left = rest
    assert torch.equal(gptq(weight, moments, Quantization(bits=3)).values.double(), values)


def test_inputs_that_are_always_zero_are_rounded():
    inputs = correlated()
    inputs[:, 3] = 0
    weight = torch.randn(4, 12, generator=torch.Generator().manual_seed(1)).double()
    mine = gptq(weight, inputs.T @ inputs, Quantization(bits=4))
    assert torch.equal(mine.values[:, 3], quantize(weight.float(), 4).values[:, 3])
    with pytest.raises(ValueError, match="not finite"):
        gptq(weight, torch.full((12, 12), torch.nan), Quantization(bits=4))


def test_a_model_is_calibrated_layer_by_layer_and_keeps_its_weights(make_model):
    model = make_model().eval()
    before = {name: tensor.clone() for name, tensor in model.weights().items()}
    ids = torch.randint(5, 20, (4, 8), generator=torch.Generator().manual_seed(0))

    def run():
        with torch.inference_mode():
            model(ids)

    numbers, errors = calibrate(model, run, Quantization(bits=3))
    assert numbers.keys() == errors.keys()
    linear = {
        f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)
    }
    assert numbers.keys() <= linear
    assert any("query" in name for name in numbers)
    rounded, mine = (
        sum(getattr(e, kind) for e in errors.values()) for kind in ("rounded", "calibrated")
    )
    assert mine < rounded
    for name, tensor in model.weights().items():
        assert torch.equal(tensor, before[name])
    kinds = by_kind(errors)
    assert all("*" in kind for kind in kinds)
    assert len(kinds) < len(errors)


def test_errors_are_averaged_by_kind_and_by_layer():
    errors = {
        "decoder.layers.0.self_attention.query.weight": LayerError(rounded=0.2, calibrated=0.1),
        "decoder.layers.0.feed_forward.experts.11.up.weight": LayerError(
            rounded=0.4, calibrated=0.3
        ),
        "decoder.layers.10.self_attention.query.weight": LayerError(rounded=0.6, calibrated=0.2),
    }
    layers = by_layer(errors)
    assert layers["decoder.layers.0"] == pytest.approx({"rounded": 0.3, "calibrated": 0.2})
    assert layers["decoder.layers.10"] == pytest.approx({"rounded": 0.6, "calibrated": 0.2})
    kinds = by_kind(errors)
    assert kinds["decoder.layers.*.self_attention.query"] == pytest.approx(
        {"rounded": 0.4, "calibrated": 0.15}
    )
    assert kinds["decoder.layers.*.feed_forward.experts.*.up"]["rounded"] == 0.4
