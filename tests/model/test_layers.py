"""A decoder layer against PyTorch's own, and its residual stream."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from model.attention import causal_mask
from model.config import TransformerConfig
from model.hooks import HookedModule
from model.layers import DecoderLayer

MakeLayer = Callable[..., DecoderLayer]
Watch = Callable[[nn.Module], HookedModule]


@pytest.fixture
def make_layer(
    make_config: Callable[..., TransformerConfig], randomise: Callable[[nn.Module], None]
) -> MakeLayer:
    def make(*, has_experts: bool = False, **changes: object) -> DecoderLayer:
        torch.manual_seed(0)
        layer = DecoderLayer(make_config(**changes), has_experts=has_experts)
        randomise(layer)
        return layer

    return make


@pytest.fixture
def x() -> Tensor:
    return torch.randn(2, 9, 32, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("is_watched", [False, True])
def test_a_dense_layer_is_pytorchs_with_copied_weights(
    make_layer: MakeLayer, watch: Watch, x: Tensor, activation: str, is_watched: bool
) -> None:
    layer = make_layer(activation=activation)
    reference = nn.TransformerEncoderLayer(
        32, 4, 48, dropout=0.0, activation=activation, batch_first=True, norm_first=True
    )
    attention, network = layer.self_attention, layer.feed_forward
    projections = [attention.query_projection, attention.key_projection, attention.value_projection]
    reference.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([each.weight for each in projections]),
            "self_attn.in_proj_bias": torch.zeros(96),
            "self_attn.out_proj.weight": attention.output_projection.weight,
            "self_attn.out_proj.bias": torch.zeros(32),
            "linear1.weight": network.up_projection.weight,
            "linear1.bias": network.up_projection.bias,
            "linear2.weight": network.down_projection.weight,
            "linear2.bias": network.down_projection.bias,
            "norm1.weight": layer.attention_norm.scale,
            "norm1.bias": layer.attention_norm.shift,
            "norm2.weight": layer.feed_forward_norm.scale,
            "norm2.bias": layer.feed_forward_norm.shift,
        }
    )
    with watch(layer).capture(["*"] if is_watched else []):
        output, _ = layer(x)
    expected = reference(x, src_mask=~causal_mask(9, 9))
    torch.testing.assert_close(output, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize(("has_experts", "part"), [(False, "feed_forward"), (True, "experts")])
def test_each_part_adds_its_output_to_the_stream(
    make_layer: MakeLayer, watch: Watch, x: Tensor, has_experts: bool, part: str
) -> None:
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


@pytest.mark.parametrize("has_experts", [False, True])
def test_each_part_reads_the_normalised_stream(
    make_layer: MakeLayer, watch: Watch, x: Tensor, has_experts: bool
) -> None:
    layer = make_layer(has_experts=has_experts)
    with watch(layer).capture(["part.residual.middle", "*.output"]) as captured:
        layer(x)
    written = layer.self_attention(layer.attention_norm(x))
    torch.testing.assert_close(captured["part.self_attention.output"], written)
    read = layer.feed_forward_norm(captured["part.residual.middle"])
    if has_experts:
        torch.testing.assert_close(captured["part.experts.output"], layer.experts(read).output)
    else:
        torch.testing.assert_close(captured["part.feed_forward.output"], layer.feed_forward(read))


def test_a_dense_layer_has_no_balance_loss_and_one_with_experts_has(
    make_layer: MakeLayer, x: Tensor
) -> None:
    assert make_layer()(x).balance_loss.item() == 0
    assert make_layer(has_experts=True)(x).balance_loss.item() >= 0.5


def test_a_layer_that_writes_nothing_passes_the_stream_on(make_layer: MakeLayer, x: Tensor) -> None:
    layer = make_layer()
    with torch.no_grad():
        layer.self_attention.output_projection.weight.zero_()
        layer.feed_forward.down_projection.weight.zero_()
        layer.feed_forward.down_projection.bias.zero_()
    assert layer(x).output.equal(x)


def test_dropout_acts_in_training_alone(make_layer: MakeLayer, x: Tensor) -> None:
    layer = make_layer(dropout=0.5)
    without = make_layer()
    assert not torch.allclose(layer(x).output, layer(x).output)
    layer.eval()
    assert layer(x).output.equal(without(x).output)


def test_experts_show_no_sites_of_a_dense_layer_and_the_other_way_round(
    make_layer: MakeLayer, watch: Watch
) -> None:
    dense = {site.name for site in watch(make_layer()).sites}
    routed = {site.name for site in watch(make_layer(has_experts=True)).sites}
    assert not any("experts" in name for name in dense)
    assert not any("feed_forward" in name for name in routed)
