"""LayerNorm and RMSNorm: normalisation over the features of each token."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.config import TransformerConfig
from headlight.model.hooks import HookPoint


class Norm(HookPoint):
    """A norm over d_model features; it is itself the hook point of its output."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__("batch query d_model", d_model=d_model)
        self.scale = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon

    def forward(self, tensor: Tensor, heads: tuple[int, ...] | None = None) -> Tensor:
        """Normalise the last axis; `heads` is unused."""
        return super().forward(self.normalise(tensor), heads)

    __call__ = nn.Module.__call__

    def normalise(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Return the normalised last axis."""
        raise NotImplementedError


class LayerNorm(Norm):
    """LayerNorm(x) = γ·(x − μ)/√(σ² + ε) + β, with μ and σ² over the features of one token.

    Ba et al. 2016, https://arxiv.org/abs/1607.06450. The arithmetic runs in one fused kernel.
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__(d_model, epsilon)
        self.shift = nn.Parameter(torch.zeros(d_model))

    def normalise(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Return the normalised last axis."""
        return F.layer_norm(x, x.shape[-1:], self.scale, self.shift, self.epsilon)


class RMSNorm(Norm):
    """RMSNorm(x) = γ·x/√(mean(x²) + ε): divides by the root mean square, without centring.

    Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467.
    """

    def normalise(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Return the normalised last axis; squares are summed in float32 or better."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        inverse = (wide.square().mean(dim=-1, keepdim=True) + self.epsilon).rsqrt()
        return self.scale * (wide * inverse).to(x.dtype)


def make_norm(config: TransformerConfig) -> Norm:
    """Return the config's norm over d_model features."""
    kind = {"layer_norm": LayerNorm, "rms_norm": RMSNorm}[config.norm]
    return kind(config.d_model, config.norm_epsilon)
