"""The input embedding: token embeddings plus positional encodings."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headlight.model.config import TransformerConfig
from headlight.model.hooks import HookPoint
from headlight.model.norms import make_norm
from headlight.model.positions import sinusoidal


class TooManyPositions(ValueError):
    """The text is longer than the table of learned positions."""


class Embedding(nn.Module):
    """x = √d_model · E[id] + PE(position). Vaswani et al. 2017, sections 3.4 and 3.5.

    The logits are computed with the same matrix E (`unembed`). Rotary positions and ALiBi act in
    attention, so with them nothing is added here and the site ``positional`` does not exist.

    Args:
        config: the architecture.
        vectors: E, if another stack shares it.
    """

    encoding: Tensor  # a buffer, of sinusoidal positions only

    def __init__(self, config: TransformerConfig, vectors: nn.Embedding | None = None) -> None:
        super().__init__()
        self.d_model = config.d_model
        self.factor = math.sqrt(config.d_model) if config.scales_embedding else 1.0
        self.vectors = vectors or nn.Embedding(config.vocab_size, config.d_model)
        self.tokens = HookPoint("batch query d_model", d_model=config.d_model)
        self.is_learned = config.positional == "learned"
        self.is_added = config.positional in ("sinusoidal", "learned")
        if self.is_learned:
            self.positions = nn.Embedding(config.max_tokens, config.d_model)
        elif self.is_added:
            table = torch.empty(config.max_tokens, config.d_model)
            if not table.is_meta:  # a meta tensor has a shape but no memory
                table.copy_(sinusoidal(config.max_tokens, config.d_model))
            self.register_buffer("encoding", table, persistent=False)
        if self.is_added:
            self.positional = HookPoint("position d_model", d_model=config.d_model)
        self.norm = make_norm(config) if config.has_embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.output = HookPoint("batch query d_model", d_model=config.d_model)

    def forward(
        self, ids: Int[Tensor, "batch query"], *, start: int | Int[Tensor, " batch"] = 0
    ) -> Float[Tensor, "batch query d_model"]:
        """Embed tokens at the positions from `start` on.

        Raises:
            TooManyPositions: positions are learned, and the text is longer than their table.
        """
        x = self.tokens(self.vectors(ids) * self.factor)
        if self.is_added:
            if isinstance(start, int):
                x = x + self.positional(self._positions(start, ids.shape[1]).to(x.dtype))
            else:  # rows at different positions: not one encoding, so none to see at `positional`
                rows = [self._positions(first, ids.shape[1]) for first in start.tolist()]
                x = x + torch.stack(rows).to(x.dtype)
        return self.output(self.dropout(self.norm(x)))

    def unembed(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Return the logits x·Eᵀ."""
        return F.linear(x, self.vectors.weight)

    def _positions(self, start: int, count: int) -> Tensor:
        table = self.positions.weight if self.is_learned else self.encoding
        if start + count <= len(table):
            return table[start : start + count]
        if self.is_learned:
            raise TooManyPositions(
                f"the text has {start + count} tokens, but positions are learned up to {len(table)}"
            )
        return sinusoidal(count, self.d_model, start=start).to(table.device)
