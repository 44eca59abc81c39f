"""A layer agrees with PyTorch's; its residual stream is the sum of its parts."""

import pytest
import torch
from torch import Tensor, nn

from headlight.model.attention.kernels import causal_mask
from headlight.model.layers import Memory, TransformerLayer

IS_TOKEN = torch.arange(9) < torch.tensor([9, 5])[:, None]


@pytest.fixture
def make_layer(make_config, randomise):
    def make(*, is_causal=True, has_cross_attention=False, has_experts=False, **changes):
        torch.manual_seed(0)
        layer = TransformerLayer(
            make_config(**changes),
            is_causal=is_causal,
            has_cross_attention=has_cross_attention,
            has_experts=has_experts,
        )
        randomise(layer)
        return layer

    return make


@pytest.fixture
def x():
    return torch.randn(2, 9, 32, generator=torch.Generator().manual_seed(1))


# --- PyTorch's own --------------------------------------------------------------------------------


def attention_weights_of(name, attention):
    """Return the weights of an attention by PyTorch's names."""
    inputs = [attention.query_projection, attention.key_projection, attention.value_projection]
    return {
        f"{name}.in_proj_weight": torch.cat([each.weight for each in inputs]),
        f"{name}.in_proj_bias": torch.cat([each.bias for each in inputs]),
        f"{name}.out_proj.weight": attention.output_projection.weight,
        f"{name}.out_proj.bias": attention.output_projection.bias,
    }


def weights_of(layer):
    """Return the weights of a layer by PyTorch's names; norms are in the order they act."""
    norms = [layer.attention_norm, layer.feed_forward_norm]
    named = attention_weights_of("self_attn", layer.self_attention)
    if layer.has_cross_attention:
        named |= attention_weights_of("multihead_attn", layer.cross_attention)
        norms.insert(1, layer.cross_attention_norm)
    for number, norm in enumerate(norms, start=1):
        named |= {f"norm{number}.weight": norm.scale, f"norm{number}.bias": norm.shift}
    network = layer.feed_forward
    for number, linear in enumerate([network.up_projection, network.down_projection], start=1):
        named |= {f"linear{number}.weight": linear.weight, f"linear{number}.bias": linear.bias}
    return named


def note_weights(attention, noted):
    """Let PyTorch's attention compute its weights head by head, and keep them."""
    asked = {"need_weights": True, "average_attn_weights": False}
    attention.register_forward_pre_hook(
        lambda _, inputs, named: (inputs, named | asked), with_kwargs=True
    )
    attention.register_forward_hook(lambda _, inputs, outputs: noted.append(outputs[1]))


same_layer = pytest.mark.parametrize("activation", ["relu", "gelu"])
either_place = pytest.mark.parametrize("norm_place", ["pre", "post"])
watched_or_not = pytest.mark.parametrize("is_watched", [False, True])


@same_layer
@either_place
@watched_or_not
@pytest.mark.parametrize("is_causal", [False, True])
def test_a_layer_is_pytorchs_encoder_layer(
    make_layer, watch, x, activation, norm_place, is_watched, is_causal
):
    layer = make_layer(
        activation=activation, norm_place=norm_place, attention_bias=True, is_causal=is_causal
    )
    reference = nn.TransformerEncoderLayer(
        32, 4, 48, 0.0, activation, batch_first=True, norm_first=norm_place == "pre"
    )
    reference.load_state_dict(weights_of(layer))
    noted: list[Tensor] = []
    note_weights(reference.self_attn, noted)
    expected = reference(
        x, src_mask=~causal_mask(9, 9) if is_causal else None, src_key_padding_mask=~IS_TOKEN
    )
    with watch(layer).capture(["*"] if is_watched else []) as captured:
        output, _ = layer(x, is_token=IS_TOKEN)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)
    if is_watched:
        weights = captured["part.self_attention.weights"]
        torch.testing.assert_close(weights, noted[0], rtol=0, atol=1e-6)


@same_layer
@either_place
@watched_or_not
def test_a_layer_with_cross_attention_is_pytorchs_decoder_layer(
    make_layer, watch, x, activation, norm_place, is_watched
):
    layer = make_layer(
        activation=activation, norm_place=norm_place, attention_bias=True, has_cross_attention=True
    )
    reference = nn.TransformerDecoderLayer(
        32, 4, 48, 0.0, activation, batch_first=True, norm_first=norm_place == "pre"
    )
    reference.load_state_dict(weights_of(layer))
    noted: list[Tensor] = []
    note_weights(reference.self_attn, noted)
    note_weights(reference.multihead_attn, noted)
    memory = x.flip(0, 1)
    expected = reference(
        x[:, :6], memory, tgt_mask=~causal_mask(6, 6), memory_key_padding_mask=~IS_TOKEN
    )
    with watch(layer).capture(["*"] if is_watched else []) as captured:
        output, _ = layer(x[:, :6], memory=Memory(memory, IS_TOKEN))
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)
    if is_watched:
        for site, weights in zip(("self_attention", "cross_attention"), noted, strict=True):
            seen = captured[f"part.{site}.weights"]
            torch.testing.assert_close(seen, weights, rtol=0, atol=1e-6)


# --- the residual stream --------------------------------------------------------------------------


@pytest.mark.parametrize(("has_experts", "part"), [(False, "feed_forward"), (True, "experts")])
def test_each_part_adds_its_output_to_the_stream(make_layer, watch, x, has_experts, part):
    layer = make_layer(has_experts=has_experts)
    with watch(layer).capture(["*"]) as captured:
        output, _ = layer(x)
    seen = {site.removeprefix("part."): tensor for site, tensor in captured.items()}
    assert seen["residual.before"] is x
    assert seen["residual.after"] is output
    torch.testing.assert_close(
        seen["residual.before"] + seen["self_attention.output"], seen["residual.middle"]
    )
    torch.testing.assert_close(
        seen["residual.middle"] + seen[f"{part}.output"], seen["residual.after"]
    )


@either_place
def test_the_outputs_of_norms_are_those_of_the_norms(make_layer, watch, x, norm_place):
    layer = make_layer(norm_place=norm_place, has_cross_attention=True)
    with watch(layer).capture(["*"]) as captured:
        layer(x, memory=Memory(x.flip(1)))
    seen = {site.removeprefix("part."): tensor for site, tensor in captured.items()}
    stream = [seen[f"residual.{place}"] for place in ("before", "between", "middle")]
    parts = ("self_attention", "cross_attention", "feed_forward")
    norms = (layer.attention_norm, layer.cross_attention_norm, layer.feed_forward_norm)
    for before, part, norm in zip(stream, parts, norms, strict=True):
        read = before if norm_place == "pre" else before + seen[f"{part}.output"]
        torch.testing.assert_close(seen[f"{part.removeprefix('self_')}_norm"], norm(read))


# --- cross-attention ------------------------------------------------------------------------------


def test_between_lies_what_self_attention_left_and_cross_attention_finds(make_layer, watch, x):
    layer = make_layer(has_cross_attention=True)
    with watch(layer).capture(["*"]) as captured:
        layer(x, memory=Memory(x.flip(1)))
    seen = {site.removeprefix("part."): tensor for site, tensor in captured.items()}
    places = [name for name in seen if name.startswith("residual.")]
    assert places == [f"residual.{place}" for place in ("before", "between", "middle", "after")]
    parts = ("self_attention", "cross_attention", "feed_forward")
    for before, part, after in zip(places, parts, places[1:], strict=False):
        torch.testing.assert_close(seen[before] + seen[f"{part}.output"], seen[after])
