"""Weights of foreign models in fewer bits, compared with a module whose parameters are rounded."""

import pytest
import torch

from headlight.analyses.layers import QuantizationSensitivity
from headlight.model.analysis.quantization_sensitivity import parts_to_round
from headlight.model.foreign.model import serve_module
from headlight.model.quantization.affine import Quantization, UnknownPart, fake_quantize
from tests.tiny_checkpoints import make_model

IDS = [5, 9, 201, 31, 7, 9]


def logits(model, *quantizations):
    return model.read([IDS], None, sites=["logits"], interventions=quantizations)["logits"]


@pytest.mark.parametrize(
    ("name", "part", "inside"),
    [
        ("llama", "decoder.layers.1.self_attention", "layers.1.self_attn"),
        ("mixtral", "decoder.layers.0.experts", "layers.0.mlp"),
        ("gpt2", "decoder.layers.0.feed_forward", "h.0.mlp"),
        ("gpt2", "decoder.embedding", "wte wpe"),
        ("llama", "*", ""),
    ],
)
def test_a_part_in_few_bits_gives_the_logits_of_its_rounded_weights(name, part, inside):
    model = serve_module(make_model(name), "causal", name)
    plain = logits(model)
    actual = logits(model, Quantization(bits=3, parts=(part,)))
    assert torch.equal(logits(model), plain)
    slow = make_model(name)
    with torch.no_grad():
        for path, parameter in slow.named_parameters():
            if parameter.ndim > 1 and any(each in path for each in inside.split() or [""]):
                parameter.copy_(fake_quantize(parameter, 3, "channel"))
        expected = slow(torch.tensor([IDS])).logits
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    assert (actual - plain).abs().max() > 0.01


def test_every_part_of_an_encoder_is_one_that_can_be_rounded():
    model = serve_module(make_model("bert"), "masked", "bert")
    plain = logits(model)
    for part in parts_to_round(model):
        assert (logits(model, Quantization(bits=2, parts=(part,))) - plain).abs().max() > 0


def test_the_parts_are_those_of_a_model_of_this_project():
    model = serve_module(make_model("llama"), "causal", "llama")
    assert QuantizationSensitivity().reason_against(model.description) is None
    layers = [
        f"decoder.layers.{n}.{part}" for n in (0, 1) for part in ("self_attention", "feed_forward")
    ]
    assert parts_to_round(model) == ["*", "decoder.embedding", *layers]
    with pytest.raises(UnknownPart, match="no part of the model"):
        logits(model, Quantization(bits=3, parts=("decoder.layers.7",)))
