"""The transformer: an encoder, a decoder, or both, by one config.

    encoder   ids → √d·E[id] + PE → n × (self-attention, feed-forward) → LN
    decoder   ids → √d·E[id] + PE → n × (causal self-attention, cross-attention where there is an
              encoder, feed-forward) → LN
    logits    the last stack's output · Eᵀ

Vaswani et al. 2017, figure 1. The left half alone is BERT's shape, the right half GPT's.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headlight.model.attention import IsToken
from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.embedding import Embedding
from headlight.model.hooks import HookedModule, HookPoint
from headlight.model.layers import LayerCache, Memory, TransformerLayer
from headlight.model.moe import Routed
from headlight.model.norms import make_norm

Cache = list[LayerCache]


class Prediction(NamedTuple):
    """What a pass gives: logits (batch, query, vocab) and the mean balance loss of its experts."""

    logits: Tensor
    balance_loss: Tensor


class Stack(nn.Module):
    """The embedding, a stack of layers and, where parts are normalised before, a last norm.

    Args:
        config: the architecture.
        is_causal: True for a decoder, False for an encoder.
        vectors: the token embeddings, where another stack has them already.
    """

    def __init__(
        self, config: TransformerConfig, *, is_causal: bool, vectors: nn.Embedding | None = None
    ) -> None:
        super().__init__()
        self.embedding = Embedding(config, vectors)
        self.layers = nn.ModuleList(
            TransformerLayer(
                config,
                is_causal=is_causal,
                has_cross_attention=is_causal and config.has_encoder,
                has_experts=config.has_experts(layer),
            )
            for layer in range(config.n_layers)
        )
        self.norm = make_norm(config) if config.norm_place == "pre" else nn.Identity()
        self.n_expert_layers = len(config.moe.layers) if config.moe else 0

    def forward(
        self,
        ids: Int[Tensor, "batch query"],
        *,
        is_token: IsToken | None = None,
        memory: Memory | None = None,
        cache: Cache | None = None,
    ) -> Routed:
        """The output of the last layer (batch, query, d_model), and the mean balance loss."""
        x = self.embedding(ids, start=len(cache[0]) if cache else 0)
        loss = x.new_zeros(())
        for number, layer in enumerate(self.layers):
            check()
            x, layer_loss = layer(
                x, is_token=is_token, memory=memory, cache=cache[number] if cache else None
            )
            loss = loss + layer_loss
        return Routed(self.norm(x), loss / max(1, self.n_expert_layers))


class Transformer(HookedModule):
    """A model of text, with what its `TransformerConfig.kind` says.

    A ``decoder`` gives for every token the logits of the token after it; an ``encoder`` those of
    the token itself, which may be masked; an ``encoder-decoder`` reads a source and gives for
    every token of a target the logits of the token after it.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        if config.has_encoder:
            self.encoder = Stack(config, is_causal=False)
        if config.has_decoder:
            vectors = self.encoder.embedding.vectors if config.has_encoder else None
            self.decoder = Stack(config, is_causal=True, vectors=vectors)
        self.logits = HookPoint("batch query vocab", vocab=config.vocab_size)
        initialise(self)

    def forward(
        self,
        ids: Int[Tensor, "batch query"],
        target_ids: Int[Tensor, "batch target"] | None = None,
        *,
        is_token: IsToken | None = None,
        cache: Cache | None = None,
    ) -> Prediction:
        """Read a text, or a source and a target.

        Args:
            ids: token ids in [0, vocab_size).
            target_ids: what the decoder of an encoder–decoder reads; padding at its end needs no
                mark, as no token sees what comes after it.
            is_token: which of `ids` are tokens; False: padding, at the end of a row.
            cache: of a decoder, from `new_cache`, holding the tokens before `ids`.

        Raises:
            ValueError: there is a target and no encoder–decoder to read it, or the reverse; or a
                cache for an encoder.
        """
        if (target_ids is not None) != (self.config.kind == "encoder-decoder"):
            raise ValueError(f"a model of kind {self.config.kind!r} {_READS[self.config.kind]}")
        if cache is not None and self.config.has_encoder:
            raise ValueError("an encoder keeps no cache; pass it to decode, after encode")
        if not self.config.has_encoder:
            return self.decode(ids, is_token=is_token, cache=cache)
        memory, loss = self.encode(ids, is_token=is_token)
        if target_ids is None:
            return Prediction(self.logits(self.encoder.embedding.unembed(memory.x)), loss)
        logits, decoder_loss = self.decode(target_ids, memory)
        return Prediction(logits, (loss + decoder_loss) / 2)

    def encode(
        self, ids: Int[Tensor, "batch source"], *, is_token: IsToken | None = None
    ) -> tuple[Memory, Float[Tensor, ""]]:
        """Read a source: what the decoder may look at, and the balance loss."""
        x, loss = self.encoder(ids, is_token=is_token)
        return Memory(x, is_token), loss

    def decode(
        self,
        ids: Int[Tensor, "batch query"],
        memory: Memory | None = None,
        *,
        is_token: IsToken | None = None,
        cache: Cache | None = None,
    ) -> Prediction:
        """Predict what follows every token.

        Args:
            ids: token ids in [0, vocab_size).
            memory: from `encode`, where there is an encoder.
            is_token: which of `ids` are tokens; None: all.
            cache: from `new_cache`, holding the tokens before `ids`; it is extended.

        Raises:
            ValueError: there is no decoder, or one that looks at a memory and none is given.
        """
        if not self.config.has_decoder:
            raise ValueError("a model of kind 'encoder' has no decoder")
        if self.config.has_encoder and memory is None:
            raise ValueError("this decoder looks at a source; pass the memory that encode gives")
        x, loss = self.decoder(ids, is_token=is_token, memory=memory, cache=cache)
        return Prediction(self.logits(self.decoder.embedding.unembed(x)), loss)

    def new_cache(self) -> Cache:
        """An empty cache of keys and values, one for each layer of the decoder."""
        return [LayerCache() for _ in range(self.config.n_layers)]

    def weights(self) -> dict[str, Tensor]:
        """Every trained tensor by its name, each once, though two stacks may share it."""
        return dict(self.named_parameters())

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Take over tensors as `weights` gives them.

        Raises:
            RuntimeError: a name or a shape is not this model's.
        """
        missing = sorted(set(self.weights()) - set(weights))
        if missing:
            raise RuntimeError(f"the weights lack {missing[0]}")
        if unknown := self.load_state_dict(weights, strict=False).unexpected_keys:
            raise RuntimeError(f"the weights hold an unknown {unknown[0]}")

    @property
    def vectors(self) -> Tensor:
        """The token embeddings (vocab, d_model), which also make the logits."""
        stack = self.encoder if self.config.has_encoder else self.decoder
        return stack.embedding.vectors.weight


_READS = {
    "decoder": "reads one text, so it takes no target_ids",
    "encoder": "reads one text, so it takes no target_ids",
    "encoder-decoder": "reads a source and a target; pass target_ids",
}


def initialise(model: Transformer) -> None:
    """Draw all weights from normal distributions: matrices with a deviation of 1/√inputs.

    What writes to the residual stream is divided by √(2·n_layers), so that the stream's variance
    does not grow with depth (Radford et al. 2019, section 2.3). Embeddings start at 0.02: small
    beside the positional encoding, so that heads find positions early, and small enough that a
    token does not predict itself through the matrix that input and output share. Learned positions
    start as large as the sinusoidal ones are.
    """
    depth = math.sqrt(2 * model.config.n_layers)
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            is_scale = name.endswith("norm.scale")
            nn.init.constant_(parameter, 1.0 if is_scale else 0.0)
            continue
        deviation = 1 / math.sqrt(parameter.shape[-1])
        if name.endswith("embedding.vectors.weight"):
            deviation = 0.02
        elif name.endswith("embedding.positions.weight"):
            deviation = math.sqrt(0.5)
        elif name.endswith(("output_projection.weight", "down_projection.weight")):
            deviation /= depth
        with torch.no_grad():
            parameter.normal_(0.0, deviation)
