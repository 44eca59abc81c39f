"""Normalisation of every token's features, then a learned scale."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.config import TransformerConfig


class LayerNorm(nn.Module):
    """LayerNorm(x) = γ·(x − μ)/√(σ² + ε) + β, with μ and σ² over the features of one token.

    Ba et al. 2016, https://arxiv.org/abs/1607.06450. The arithmetic runs in one fused kernel.
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d_model))
        self.shift = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalise the last axis."""
        return F.layer_norm(x, x.shape[-1:], self.scale, self.shift, self.epsilon)


class RMSNorm(nn.Module):
    """RMSNorm(x) = γ·x/√(mean(x²) + ε): the features keep their mean and lose their size.

    Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467.
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Normalise the last axis, in float32 or better as a sum of squares needs."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        size = (wide.square().mean(dim=-1, keepdim=True) + self.epsilon).rsqrt()
        return self.scale * (wide * size).to(x.dtype)


def make_norm(config: TransformerConfig) -> LayerNorm | RMSNorm:
    """The norm that a config names, over d_model features."""
    kind = {"layer_norm": LayerNorm, "rms_norm": RMSNorm}[config.norm]
    return kind(config.d_model, config.norm_epsilon)
