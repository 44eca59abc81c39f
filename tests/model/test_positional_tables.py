"""Encodings without a text are those that a model computes with one."""

import pytest
import torch

from headlight.model.config import TransformerConfig
from headlight.model.positional_tables import (
    alibi_encoding,
    learned_encoding,
    rotary_encoding,
    sinusoidal_encoding,
)
from headlight.model.positions import rotate
from headlight.model.transformer import Transformer

SIZES = {"n_layers": 1, "n_heads": 3, "d_model": 12, "d_ff": 8, "vocab_size": 20, "max_tokens": 9}


def captured(site, length, **choices):
    """The activation of a model at a site for a text of that length."""
    model = Transformer(TransformerConfig(**SIZES, **choices))
    with torch.no_grad(), model.capture([site]) as found:
        model(torch.arange(length)[None])
    return found[site]


def test_sinusoidal_is_what_a_model_adds():
    arrays = sinusoidal_encoding(7, 12)
    added = captured("decoder.embedding.positional", 7)
    assert arrays["encoding"].axes == ("position", "d_model")
    torch.testing.assert_close(torch.from_numpy(arrays["encoding"].data), added)


def test_frequencies_are_the_papers():
    found = sinusoidal_encoding(1, 8)["frequencies"]
    assert found.axes == ("pair",)
    assert found.data.tolist() == pytest.approx([1, 0.1, 0.01, 0.001])


def test_rotary_angles_turn_as_rotate_does():
    arrays = rotary_encoding(6, 4)
    assert {array.axes for array in arrays.values()} == {("position", "pair")}
    turned = rotate(torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(6, 4))
    torch.testing.assert_close(torch.from_numpy(arrays["cos"].data), turned[:, 0::2])
    torch.testing.assert_close(torch.from_numpy(arrays["sin"].data), turned[:, 1::2])
    assert arrays["angles"].data[5].tolist() == pytest.approx([5, 0.05])


def test_alibi_is_the_bias_of_a_model_with_as_many_heads():
    arrays = alibi_encoding(5, 3)
    bias = captured("decoder.layers.0.self_attention.bias", 5, positional="alibi")
    torch.testing.assert_close(torch.from_numpy(arrays["bias"].data), bias)
    assert arrays["bias"].data[1, 4, 3] == -arrays["slopes"].data[1]
    assert arrays["slopes"].axes == ("head",)


def test_learned_is_the_start_of_the_models_own_table():
    model = Transformer(TransformerConfig(**SIZES, positional="learned"))
    (found,) = learned_encoding(model, 4).values()
    torch.testing.assert_close(
        torch.from_numpy(found.data), model.decoder.embedding.positions.weight.detach()[:4]
    )


def test_both_stacks_of_an_encoder_decoder_have_a_table():
    config = TransformerConfig(**SIZES, positional="learned", kind="encoder-decoder")
    arrays = learned_encoding(Transformer(config), 9)
    assert {name: array.data.shape for name, array in arrays.items()} == {
        "encoder.encoding": (9, 12),
        "decoder.encoding": (9, 12),
    }
