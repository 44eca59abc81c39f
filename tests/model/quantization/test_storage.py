"""A file with quantized weights is read as the rounded model, and damage to it is rejected."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.loading import describe, load, save
from headlight.model.config import KINDS
from headlight.model.quantization.affine import Quantization
from headlight.model.quantization.storage import n_packed_bytes, pack, unpack
from tests.model.quantization.test_affine import BITS, logits


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("bits", "per"), [(8, "channel"), (3, "tensor")])
def test_a_quantized_file_is_read_as_the_rounded_model(
    tmp_path, make_model, replaced, tokenizer, card, ids, kind, bits, per
):
    model = make_model(kind=kind, positional="learned", vocab_size=tokenizer.vocab_size)
    stored = Quantization(bits=bits, per=per)
    save(tmp_path / "q", model, tokenizer, card, dtype=torch.float32, quantization=stored)
    found = load(tmp_path / "q")
    assert found.description.quantization == stored
    assert logits(found.model, ids).equal(logits(replaced(model, bits, per=per), ids))


def test_the_parts_that_are_not_chosen_keep_their_precision(
    tmp_path, make_model, replaced, tokenizer, card, ids
):
    model = make_model(vocab_size=tokenizer.vocab_size)
    stored = Quantization(bits=4, parts=("*.self_attention",))
    save(tmp_path / "q", model, tokenizer, card, dtype=torch.float32, quantization=stored)
    expected = replaced(model, 4, lambda name: ".self_attention." in name)
    assert logits(load(tmp_path / "q").model, ids).equal(logits(expected, ids))


@pytest.fixture
def folder(tmp_path, make_model, tokenizer, card):
    """Return a model of 4 bits."""
    model = make_model(vocab_size=tokenizer.vocab_size)
    save(tmp_path / "q", model, tokenizer, card, quantization=Quantization(bits=4))
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
