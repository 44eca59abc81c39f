"""Quantized weights equal PyTorch's fake quantization, alone and in passes."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from headlight.model.config import KINDS
from headlight.model.quantization.affine import (
    Quantization,
    UnknownPart,
    fake_quantize,
    matrices_of,
    quantize,
    quantized_weights,
)

BITS = range(2, 9)


@pytest.fixture
def matrix():
    """Rows of different size, sign and middle."""
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(24, 40, generator=generator)
    return rows * torch.logspace(-4, 4, 24)[:, None] + torch.arange(24)[:, None] - 8


def logits(model, ids):
    both = (ids, ids[:, :5]) if model.config.kind == "encoder-decoder" else (ids,)
    with torch.inference_mode():
        return model(*both).logits


# --- one tensor -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", BITS)
def test_each_row_equals_the_fake_quantization_of_pytorch(matrix, bits):
    found = quantize(matrix, bits)
    scales, zeros, most = found.scales, found.zero_points.int(), 2**bits - 1
    expected = torch.fake_quantize_per_channel_affine(matrix, scales, zeros, 0, 0, most)
    assert found.dequantize().equal(expected)
    assert fake_quantize(matrix, bits).equal(expected)
    assert int(found.values.max()) == most
    error = (expected - matrix).abs()
    assert (error <= 0.5 * scales[:, None] * (1 + 1e-4) + 1e-9).all()


@pytest.mark.parametrize("bits", BITS)
def test_a_whole_tensor_equals_the_fake_quantization_of_pytorch(matrix, bits):
    found = quantize(matrix, bits, "tensor")
    scale, zero = found.scales.item(), int(found.zero_points)
    expected = torch.fake_quantize_per_tensor_affine(matrix, scale, zero, 0, 2**bits - 1)
    assert found.dequantize().equal(expected)


def test_a_zero_point_of_128_breaks_in_a_signed_byte():
    weights = torch.tensor([[-1.0, 0.0, 0.99]])
    found = quantize(weights, 8)
    assert 128 <= int(found.zero_points) <= 129
    assert found.dequantize()[0, 1] == 0
    signed = found.zero_points.to(torch.int8)
    assert int(signed) < 0, "it wraps around"
    wrong = found.scales * (found.values.float() - signed.float())
    assert (wrong - weights).abs().min() > 1.9, "and every weight is off by the whole range"


def test_zeros_constants_and_empty_tensors_stay_as_they_are():
    for constant in (0.0, 0.3, -7.5, 1e-30, -3e38):
        rows = torch.full((3, 4), constant)
        for bits in (2, 5, 8):
            torch.testing.assert_close(fake_quantize(rows, bits), rows, rtol=1e-6, atol=0)
    tiny = torch.full((1, 2), 1e-45)
    assert fake_quantize(tiny, 4).abs().max() <= tiny.max()
    for shape in ((0, 4), (3, 0), (0,)):
        for per in ("channel", "tensor"):
            assert fake_quantize(torch.empty(shape), 4, per).shape == shape
    whole = torch.tensor([[-3e38, 0.0, 3e38]])
    assert fake_quantize(whole, 8).isfinite().all()
    rows = torch.tensor([[0.0, 5.0, 6.0], [-6.0, -5.0, 0.0]])
    assert (fake_quantize(rows, 2)[rows == 0] == 0).all()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_numbers_that_are_not_finite_are_rejected(bad):
    with pytest.raises(ValueError, match="not finite"):
        quantize(torch.tensor([[1.0, bad]]), 8)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("bits", [1, 9, 0, 4.0, True])
def test_other_numbers_of_bits_are_rejected(bits):
    with pytest.raises(ValueError, match=r"bits \(.+\) must be 2 to 8"):
        Quantization(bits=bits)
    with pytest.raises(ValueError, match="2 to 8"):
        quantize(torch.ones(2, 2), bits)


@pytest.mark.usefixtures("unchecked")
def test_settings_are_checked():
    with pytest.raises(ValueError, match="channel or tensor"):
        Quantization(bits=4, per="row")
    older = {"bits": 4, "parts": [], "per": "channel", "activations": "float"}
    assert Quantization.from_dict(older) == Quantization(bits=4)
    with pytest.raises(ValueError, match="an object of bits"):
        Quantization.from_dict({**older, "activations": "dynamic"})


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "n_expected"),
    [
        ("decoder.layers.0.self_attention", 4),
        ("*.self_attention", 8),
        ("decoder.layers.1.experts", 1 + 2 * 4),
        ("*", 6 + 4 + 9 + 1),
    ],
)
def test_a_part_stands_for_all_matrices_inside_it(model, part, n_expected):
    found = Quantization(bits=4, parts=(part,)).chosen(matrices_of(model))
    assert len(found) == n_expected, found


def test_an_unknown_part_is_named_with_those_that_there_are(model):
    with pytest.raises(UnknownPart, match=r"'decoder\.norm'; it has .*decoder\.layers\.\*\.self_"):
        Quantization(bits=4, parts=("decoder.norm",)).chosen(matrices_of(model))


# --- passes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_with_quantized_weights_equals_that_of_the_rounded_model(
    make_model, replaced, ids, kind
):
    model = make_model(kind=kind, positional="learned")
    plain = logits(model, ids)
    with quantized_weights(model, [Quantization(bits=3)]):
        found = logits(model, ids)
    assert found.equal(logits(replaced(model, 3), ids))
    assert not found.equal(plain)
    assert logits(model, ids).equal(plain)


def test_copies_follow_a_change_of_the_weights(model, replaced, ids):
    four = Quantization(bits=4)
    with quantized_weights(model, [four]):
        before = logits(model, ids)
    with torch.no_grad():
        model.vectors.mul_(2)
    with quantized_weights(model, [four]):
        after = logits(model, ids)
    assert after.equal(logits(replaced(model, 4), ids))
    assert not after.equal(before)


def test_threads_with_other_bits_never_see_each_others_weights(model, replaced, ids):
    expected = {bits: logits(replaced(model, bits), ids) for bits in (2, 4, 8)}
    expected[None] = logits(model, ids)
    weights = {name: tensor.clone() for name, tensor in model.weights().items()}
    start = Barrier(4)

    def read(bits):
        start.wait()
        found = []
        for _ in range(5):
            if bits is None:
                found.append(logits(model, ids))
                continue
            with quantized_weights(model, [Quantization(bits=bits)]):
                found.append(logits(model, ids))
        # A thread may use more cores than the first, and so other kernels.
        return all(torch.allclose(one, expected[bits], rtol=1e-5, atol=1e-5) for one in found)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, expected))
    assert all(tensor.equal(weights[name]) for name, tensor in model.weights().items())
