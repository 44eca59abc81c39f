"""The decoder-only transformer: embedding, layers, final norm, logits.

ids → √d·E[id] + PE → n × (attention, feed-forward or experts) → LN → ·Eᵀ → logits
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from model.attention import KeyValueCache
from model.config import TransformerConfig
from model.embedding import Embedding
from model.hooks import HookedModule, HookPoint
from model.layers import DecoderLayer
from model.norms import LayerNorm

Cache = list[KeyValueCache]


class Prediction(NamedTuple):
    """What a pass gives: logits (batch, query, vocab) and the mean balance loss of its experts."""

    logits: Tensor
    balance_loss: Tensor


class Decoder(nn.Module):
    """The embedding, a stack of layers and the norm after the last."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config)
        self.layers = nn.ModuleList(
            DecoderLayer(config, has_experts=config.has_experts(layer))
            for layer in range(config.n_layers)
        )
        self.norm = LayerNorm(config.d_model)
        self.n_expert_layers = len(config.moe.layers) if config.moe else 0

    def forward(
        self, ids: Int[Tensor, "batch query"], cache: Cache | None = None
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, ""]]:
        """The normalised output of the last layer, and the mean balance loss."""
        x = self.embedding(ids, start=len(cache[0]) if cache else 0)
        balance_loss = x.new_zeros(())
        for number, layer in enumerate(self.layers):
            x, layer_loss = layer(x, cache[number] if cache else None)
            balance_loss = balance_loss + layer_loss
        return self.norm(x), balance_loss / max(1, self.n_expert_layers)


class Transformer(HookedModule):
    """A language model: for every token of a text, the logits of the token after it."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.decoder = Decoder(config)
        self.logits = HookPoint("batch query vocab", vocab=config.vocab_size)
        initialise(self)

    def forward(self, ids: Int[Tensor, "batch query"], cache: Cache | None = None) -> Prediction:
        """Predict what follows every token.

        Args:
            ids: token ids in [0, vocab_size).
            cache: from `new_cache`, holding the tokens before `ids`; it is extended.
        """
        x, balance_loss = self.decoder(ids, cache)
        return Prediction(self.logits(self.decoder.embedding.unembed(x)), balance_loss)

    def new_cache(self) -> Cache:
        """An empty cache of keys and values, one for each layer."""
        return [KeyValueCache() for _ in range(self.config.n_layers)]


def initialise(model: Transformer) -> None:
    """Draw all weights from normal distributions: matrices with a deviation of 1/√inputs.

    What writes to the residual stream is divided by √(2·n_layers), so that the stream's variance
    does not grow with depth (Radford et al. 2019, section 2.3). Embeddings start at 0.02: small
    beside the positional encoding, so that heads find positions early, and small enough that a
    token does not predict itself through the matrix that input and output share.
    """
    depth = math.sqrt(2 * model.config.n_layers)
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            is_scale = name.endswith("norm.scale")
            nn.init.constant_(parameter, 1.0 if is_scale else 0.0)
            continue
        is_embedding = name.endswith("vectors.weight")
        deviation = 0.02 if is_embedding else 1 / math.sqrt(parameter.shape[-1])
        if name.endswith(("output_projection.weight", "down_projection.weight")):
            deviation /= depth
        with torch.no_grad():
            parameter.normal_(0.0, deviation)
