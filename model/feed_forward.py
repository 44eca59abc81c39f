"""The position-wise feed-forward network, which transforms each token's vector by itself."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.config import TransformerConfig
from headlight.model.hooks import HookPoint

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    """FFN(x) = f(x·W₁ + b₁)·W₂ + b₂ with f = ReLU or GELU. Vaswani et al. 2017, section 3.3.

    SwiGLU multiplies two projections instead: (SiLU(x·W_g) ⊙ x·W₁)·W₂. Shazeer 2020,
    https://arxiv.org/abs/2002.05202.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        has_bias = config.feed_forward_bias
        self.is_gated = config.activation == "swiglu"
        if self.is_gated:
            self.gate_projection = nn.Linear(config.d_model, config.d_ff, bias=has_bias)
        self.up_projection = nn.Linear(config.d_model, config.d_ff, bias=has_bias)
        self.down_projection = nn.Linear(config.d_ff, config.d_model, bias=has_bias)
        self.activation = _ACTIVATIONS[config.activation]

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Apply the network to every token."""
        written: Tensor = self.down_projection(self.hidden_units(x))
        return written

    def hidden_units(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_ff"]:
        """Return the hidden units f(x·W₁ + b₁), or SiLU(x·W_g) ⊙ x·W₁."""
        activated = self.activation(self.before_activation(x))
        hidden: Tensor = activated * self.up_projection(x) if self.is_gated else activated
        return hidden

    def before_activation(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_ff"]:
        """Return the argument of f: x·W₁ + b₁, or x·W_g."""
        projection = self.gate_projection if self.is_gated else self.up_projection
        projected: Tensor = projection(x)
        return projected


class HookedFeedForward(FeedForward):
    """A feed-forward network with hook points before and after f, and at its output."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.pre_activation = HookPoint("batch query d_ff", d_ff=config.d_ff)
        self.hidden = HookPoint("batch query d_ff", d_ff=config.d_ff)
        self.output = HookPoint("batch query d_model", d_model=config.d_model)

    def forward(
        self, x: Float[Tensor, "batch query d_model"]
    ) -> Float[Tensor, "batch query d_model"]:
        """Apply the network to every token."""
        return self.output(self.down_projection(self.hidden(self.hidden_units(x))))

    def before_activation(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_ff"]:
        """As `FeedForward.before_activation`, through the hook point."""
        return self.pre_activation(super().before_activation(x))
