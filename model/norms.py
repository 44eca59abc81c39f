"""Layer normalisation: every token's features to mean 0 and variance 1, then a learned scale."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


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
