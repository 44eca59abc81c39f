"""From token ids to vectors: the token's embedding plus the encoding of its position."""

from __future__ import annotations

import math

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from model.config import TransformerConfig
from model.hooks import HookPoint
from model.positions import sinusoidal


class Embedding(nn.Module):
    """x = √d_model · E[id] + PE(position). Vaswani et al. 2017, sections 3.4 and 3.5.

    The same matrix E turns the last layer's output into logits (`unembed`), so a token is
    predicted where the output points along its embedding.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.d_model = config.d_model
        self.vectors = nn.Embedding(config.vocab_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer(
            "encoding", sinusoidal(config.max_tokens, config.d_model), persistent=False
        )
        self.tokens = HookPoint("batch query d_model", d_model=config.d_model)
        self.positional = HookPoint("position d_model", d_model=config.d_model)
        self.output = HookPoint("batch query d_model", d_model=config.d_model)

    def forward(
        self, ids: Int[Tensor, "batch query"], *, start: int = 0
    ) -> Float[Tensor, "batch query d_model"]:
        """Embed tokens that stand at the positions from `start` on."""
        tokens = self.tokens(self.vectors(ids) * math.sqrt(self.d_model))
        positional = self.positional(self._positions(start, ids.shape[1]).to(tokens.dtype))
        return self.output(self.dropout(tokens + positional))

    def unembed(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Logits: the product of each vector with every token's embedding."""
        return F.linear(x, self.vectors.weight)

    def _positions(self, start: int, count: int) -> Tensor:
        if start + count <= len(self.encoding):
            return self.encoding[start : start + count]
        return sinusoidal(count, self.d_model, start=start).to(self.encoding.device)
