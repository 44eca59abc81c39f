"""The feed-forward network against its formula."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from model.config import TransformerConfig
from model.feed_forward import FeedForward, HookedFeedForward
from model.hooks import HookedModule

ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5)),
}


@pytest.fixture
def x() -> Tensor:
    return torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", [FeedForward, HookedFeedForward])
def test_the_network_is_the_papers_formula(
    make_config: Callable[..., TransformerConfig],
    x: Tensor,
    activation: str,
    kind: type[FeedForward],
) -> None:
    network = kind(make_config(activation=activation))
    w1, b1 = network.up_projection.weight.T, network.up_projection.bias
    w2, b2 = network.down_projection.weight.T, network.down_projection.bias
    expected = ACTIVATIONS[activation](x @ w1 + b1) @ w2 + b2
    torch.testing.assert_close(network(x), expected, rtol=0, atol=1e-6)


def test_what_is_captured_is_what_was_computed(
    make_config: Callable[..., TransformerConfig],
    watch: Callable[[nn.Module], HookedModule],
    x: Tensor,
) -> None:
    network = HookedFeedForward(make_config(activation="relu"))
    with watch(network).capture(["part.*"]) as captured:
        output = network(x)
    hidden = (x @ network.up_projection.weight.T + network.up_projection.bias).clamp(min=0)
    assert list(captured) == ["part.hidden", "part.output"]
    torch.testing.assert_close(captured["part.hidden"], hidden)
    assert captured["part.output"] is output


def test_every_token_is_worked_on_alone(
    make_config: Callable[..., TransformerConfig], x: Tensor
) -> None:
    network = FeedForward(make_config())
    torch.testing.assert_close(network(x)[1, 2], network(x[1, 2]))
