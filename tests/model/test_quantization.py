"""Quantized weights equal PyTorch's fake quantization, in files and in passes."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier

import pytest
import torch
from safetensors.torch import load_file, save_file

from headlight.model.checkpoint import describe, load, save
from headlight.model.checkpoint_files import CheckpointError
from headlight.model.config import KINDS
from headlight.model.quantization import (
    DynamicLinear,
    Quantization,
    StoredQuantization,
    UnknownPart,
    fake_quantize,
    matrices_of,
    n_packed_bytes,
    pack,
    quantize,
    quantized_weights,
    unpack,
)

BITS = range(2, 9)


@pytest.fixture
def matrix():
    """Rows of different size, sign and middle."""
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(24, 40, generator=generator)
    return rows * torch.logspace(-4, 4, 24)[:, None] + torch.arange(24)[:, None] - 8


@pytest.fixture
def replaced():
    """A copy of a model whose chosen matrices are rounded in place."""

    def make(model, bits, chosen=lambda name: True, per="channel"):
        copied = copy.deepcopy(model)
        with torch.no_grad():
            for name, matrix in matrices_of(copied).items():
                if chosen(name):
                    matrix.copy_(fake_quantize(matrix, bits, per))
        return copied

    return make


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


def test_the_dtype_stays():
    assert fake_quantize(torch.ones(2, 3, dtype=torch.bfloat16), 4).dtype == torch.bfloat16


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_numbers_that_are_not_finite_are_rejected(bad):
    with pytest.raises(ValueError, match="not finite"):
        quantize(torch.tensor([[1.0, bad]]), 8)


@pytest.mark.parametrize("bits", [1, 9, 0, 4.0, True])
def test_other_numbers_of_bits_are_rejected(bits):
    with pytest.raises(ValueError, match=r"bits \(.+\) must be 2 to 8"):
        Quantization(bits=bits)
    with pytest.raises(ValueError, match="2 to 8"):
        quantize(torch.ones(2, 2), bits)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="channel or tensor"):
        Quantization(bits=4, per="row")
    with pytest.raises(ValueError, match="dynamic activations need weights of 8 bits, not 4"):
        StoredQuantization(bits=4, activations="dynamic")
    with pytest.raises(ValueError, match="float or dynamic"):
        StoredQuantization(bits=4, activations="static")


@pytest.mark.parametrize("bits", BITS)
def test_values_are_packed_without_gaps(bits):
    values = torch.randint(2**bits, (7, 9), generator=torch.Generator().manual_seed(1))
    values = values.to(torch.uint8)
    packed = pack(values, bits)
    assert packed.shape == (n_packed_bytes(63, bits),) == (-(-63 * bits // 8),)
    assert unpack(packed, bits, (7, 9)).equal(values)
    assert unpack(pack(values[:0], bits), bits, (0, 9)).shape == (0, 9)


def test_the_first_value_takes_the_lowest_bits():
    assert pack(torch.tensor([1, 2, 3, 0], dtype=torch.uint8), 2).tolist() == [0b00111001]


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "n_expected"),
    [
        ("decoder.layers.0.self_attention", 4),
        ("decoder.layers.0", 6),
        ("*.self_attention", 8),
        ("*.key_projection", 2),
        ("decoder.embedding", 1),
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


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bits", "per"), [(8, "channel"), (3, "tensor")])
def test_a_quantized_file_is_read_as_the_rounded_model(
    tmp_path, make_model, replaced, tokenizer, card, ids, kind, bits, per
):
    model = make_model(kind=kind, positional="learned", vocab_size=tokenizer.vocab_size)
    stored = StoredQuantization(bits=bits, per=per)
    save(tmp_path / "q", model, tokenizer, card, dtype=torch.float32, quantization=stored)
    found = load(tmp_path / "q")
    assert found.description.quantization == stored
    assert logits(found.model, ids).equal(logits(replaced(model, bits, per=per), ids))


def test_fewer_bits_make_a_smaller_file(tmp_path, make_model, tokenizer, card):
    model = make_model(vocab_size=tokenizer.vocab_size, d_model=64, d_ff=128)
    sizes = []
    for bits in (8, 6, 4, 3, 2):
        save(tmp_path / "q", model, tokenizer, card, quantization=StoredQuantization(bits=bits))
        sizes.append((tmp_path / "q" / "model.safetensors").stat().st_size)
    n_matrix = sum(matrix.numel() for matrix in matrices_of(model).values())
    steps = [a - b for a, b in pairwise(sizes)]
    for step, bits in zip(steps, (2, 2, 1, 1), strict=True):
        assert step == pytest.approx(n_matrix * bits / 8, rel=0.01)


def test_the_parts_that_are_not_chosen_keep_their_precision(
    tmp_path, make_model, replaced, tokenizer, card, ids
):
    model = make_model(vocab_size=tokenizer.vocab_size)
    stored = StoredQuantization(bits=4, parts=("*.self_attention",))
    save(tmp_path / "q", model, tokenizer, card, dtype=torch.float32, quantization=stored)
    expected = replaced(model, 4, lambda name: ".self_attention." in name)
    assert logits(load(tmp_path / "q").model, ids).equal(logits(expected, ids))


@pytest.fixture
def folder(tmp_path, make_model, tokenizer, card):
    """A model of 4 bits."""
    model = make_model(vocab_size=tokenizer.vocab_size)
    save(tmp_path / "q", model, tokenizer, card, quantization=StoredQuantization(bits=4))
    return tmp_path / "q"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 9}, r"bits \(9\) must be 2 to 8"),
        ({"bits": 5}, "has shape"),
        ({"parts": ["nothing"]}, "no part of the model matches 'nothing'"),
        ({"parts": "all"}, "parts must be a list"),
        ({"speed": 1}, "must be an object of bits and"),
    ],
)
def test_a_config_that_contradicts_the_file_is_rejected(folder, change, message):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["quantization"] |= change
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=message):
        describe(folder)


def test_damaged_scales_and_zero_points_are_rejected(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = "decoder.layers.0.self_attention.key_projection.weight"
    scale, zero = f"{name}.quantization_scale", f"{name}.quantization_zero_point"
    save_file({**weights, zero: weights[zero] + 16}, path)
    with pytest.raises(CheckpointError, match=r"a zero point of .* in 4 bits"):
        load(folder)
    save_file({**weights, scale: weights[scale] * torch.inf}, path)
    with pytest.raises(CheckpointError, match="not finite"):
        load(folder)
    save_file({**weights, scale: weights[scale].half()}, path)
    with pytest.raises(CheckpointError, match="holds F16, expected F32"):
        load(folder)


# --- activations ----------------------------------------------------------------------------------


def test_a_dynamic_layer_multiplies_whole_numbers():
    torch.manual_seed(0)
    linear = torch.nn.Linear(24, 16).requires_grad_(False)
    linear.weight.copy_(fake_quantize(linear.weight, 8))
    x = 3 * torch.randn(5, 24)
    found = DynamicLinear(linear, "channel")(x)
    most = 127 if torch.backends.quantized.engine in ("x86", "fbgemm") else 255
    low, high = x.min().clamp(max=0).item(), x.max().clamp(min=0).item()
    scale = (high - low) / most
    rounded = torch.fake_quantize_per_tensor_affine(x, scale, round(-low / scale), 0, most)
    torch.testing.assert_close(found, linear(rounded), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(found, linear(x), atol=1e-3)


def test_a_model_with_dynamic_activations_is_near_the_one_without(
    tmp_path, make_model, tokenizer, card, ids
):
    model = make_model(vocab_size=tokenizer.vocab_size)
    stored = StoredQuantization(bits=8, activations="dynamic")
    save(tmp_path / "q", model, tokenizer, card, quantization=stored)
    checkpoint = load(tmp_path / "q")
    layers = [one for one in checkpoint.model.modules() if isinstance(one, DynamicLinear)]
    assert len(layers) == 4 + 2 + 4 + 9
    found, exact = logits(checkpoint.model, ids), logits(model, ids)
    assert 1e-4 < (found - exact).norm() / exact.norm() < 0.1
    assert checkpoint.model.weights().keys() == model.weights().keys()
    with pytest.raises(CheckpointError, match="on the CPU in float32, not on cpu in bfloat16"):
        load(tmp_path / "q", dtype=torch.bfloat16)


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
        return all(one.equal(expected[bits]) for one in found)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, expected))
    assert all(tensor.equal(weights[name]) for name, tensor in model.weights().items())
