"""Quantized weights are packed, read as the rounded ones, and damage to them is rejected."""

import pytest
import torch

from headlight.model.quantization.affine import Quantization
from headlight.model.quantization.storage import (
    n_packed_bytes,
    pack,
    restored_weights,
    stored_layout,
    stored_weights,
    unpack,
)
from tests.model.quantization.test_affine import BITS


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


@pytest.mark.parametrize(("bits", "per"), [(8, "channel"), (3, "tensor")])
def test_quantized_weights_are_read_as_the_rounded_ones(make_model, replaced, bits, per):
    model = make_model(positional="learned")
    asked = Quantization(bits=bits, parts=("*.self_attention",), per=per)
    stored = stored_weights(model.weights(), asked, torch.float32)
    layout = stored_layout(model.weights(), asked)
    assert {name: tuple(tensor.shape) for name, tensor in stored.items()} == {
        name: each.shape for name, each in layout.items()
    }
    expected = replaced(model, bits, lambda name: ".self_attention." in name, per=per)
    restored = restored_weights(stored.__getitem__, model.weights(), asked)
    for name, tensor in expected.weights().items():
        assert restored[name].equal(tensor), name


def test_a_zero_point_beyond_its_bits_is_rejected(make_model):
    model, asked = make_model(), Quantization(bits=4)
    stored = stored_weights(model.weights(), asked, torch.float32)
    stored["decoder.layers.0.self_attention.key_projection.weight.quantization_zero_point"] += 16
    with pytest.raises(ValueError, match=r"a zero point of .* in 4 bits"):
        restored_weights(stored.__getitem__, model.weights(), asked)
