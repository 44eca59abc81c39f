"""The feed-forward network against its formula."""

import pytest
import torch

from headlight.model.feed_forward import FeedForward, HookedFeedForward

ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5)),
}


@pytest.fixture
def x():
    return torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", [FeedForward, HookedFeedForward])
def test_the_network_is_the_papers_formula(make_config, x, activation, kind):
    network = kind(make_config(activation=activation))
    w1, b1 = network.up_projection.weight.T, network.up_projection.bias
    w2, b2 = network.down_projection.weight.T, network.down_projection.bias
    expected = ACTIVATIONS[activation](x @ w1 + b1) @ w2 + b2
    torch.testing.assert_close(network(x), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [FeedForward, HookedFeedForward])
@pytest.mark.parametrize("has_bias", [False, True])
def test_swiglu_is_the_product_of_a_gate_and_what_it_lets_through(
    make_config, randomise, x, kind, has_bias
):
    network = kind(make_config(activation="swiglu", feed_forward_bias=has_bias))
    randomise(network)

    def affine(x, projection):
        return x @ projection.weight.T + (projection.bias if has_bias else 0)

    gate = affine(x, network.gate_projection)
    hidden = gate / (1 + torch.exp(-gate)) * affine(x, network.up_projection)
    expected = affine(hidden, network.down_projection)
    torch.testing.assert_close(network(x), expected, rtol=0, atol=1e-6)


def test_what_is_captured_is_what_was_computed(make_config, watch, x):
    network = HookedFeedForward(make_config(activation="relu"))
    with watch(network).capture(["part.*"]) as captured:
        output = network(x)
    before = x @ network.up_projection.weight.T + network.up_projection.bias
    assert list(captured) == ["part.pre_activation", "part.hidden", "part.output"]
    torch.testing.assert_close(captured["part.pre_activation"], before)
    torch.testing.assert_close(captured["part.hidden"], before.clamp(min=0))
    assert captured["part.output"] is output
