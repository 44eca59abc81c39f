"""The transformer: an encoder, a decoder, or both.

    encoder   ids → √d·E[id] + PE → n × (self-attention, feed-forward) → LN
    decoder   ids → √d·E[id] + PE → n × (causal self-attention, cross-attention if there is an
              encoder, feed-forward) → LN
    logits    the output of the last stack · Eᵀ
    reward    of a reward model: the output of the last stack · w + b, a number for each token

Vaswani et al. 2017, figure 1. A model of an encoder only is BERT's architecture;
of a decoder only, GPT's.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headlight.model.attention.kernels import IsToken
from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.embedding import Embedding
from headlight.model.hooks import HookedModule, HookPoint
from headlight.model.layers import LayerCache, Memory, TransformerLayer
from headlight.model.moe import LayerOutput
from headlight.model.norms import make_norm

Cache = list[LayerCache]


class Prediction(NamedTuple):
    """The logits (batch, query, vocab), and the mean balance loss of the expert layers.

    ``reward`` (batch, query) rates the text up to each token; None: not a reward model.
    """

    logits: Tensor
    balance_loss: Tensor
    reward: Tensor | None = None


class Stack(nn.Module):
    """The embedding, the layers and, with the ``pre`` norm, a final norm.

    Args:
        config: the architecture.
        is_causal: True for a decoder, False for an encoder.
        vectors: the token embeddings, if another stack shares them.
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
        start: int | Tensor | None = None,
        n_layers: int | None = None,
    ) -> LayerOutput:
        """Return the normalised output of the last layer that runs, and the mean balance loss.

        Args:
            ids: token ids in [0, vocab_size).
            is_token: False at padding; None: there is no padding.
            memory: the encoder's output, for cross-attention.
            cache: of the tokens before `ids`, which is extended.
            start: the position of each row's first token; None: that after the cache.
            n_layers: how many layers run, from the first on; None: all.

        Returns:
            The output (batch, query, d_model), and the loss, 0 for a dense model.

        Raises:
            Cancelled: the pass was cancelled between two layers (`cancellation`).
        """
        if start is None:
            start = len(cache[0]) if cache else 0
        x = self.embedding(ids, start=start)
        loss = x.new_zeros(())
        for number, layer in enumerate(islice(self.layers, n_layers)):
            check()
            x, layer_loss = layer(
                x, is_token=is_token, memory=memory, cache=cache[number] if cache else None
            )
            loss = loss + layer_loss
        return LayerOutput(self.norm(x), loss / max(1, self.n_expert_layers))


class Transformer(HookedModule):
    """A language model of the kind that `TransformerConfig.kind` names.

    A ``decoder`` predicts the token after each token; an ``encoder`` predicts each token itself,
    which may be masked; an ``encoder-decoder`` reads a source and predicts the token after each
    token of the target.
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
        if config.has_reward:
            self.reward_head = nn.Linear(config.d_model, 1)
            self.reward = HookPoint("batch query")
        initialise(self)

    def forward(
        self,
        ids: Int[Tensor, "batch query"],
        target_ids: Int[Tensor, "batch target"] | None = None,
        *,
        is_token: IsToken | None = None,
        cache: Cache | None = None,
        has_logits: bool = True,
    ) -> Prediction:
        """Run the model on a text, or on a source and a target.

        Args:
            ids: token ids in [0, vocab_size), of the text or of the source.
            target_ids: token ids of the target, for an encoder–decoder. They need no padding mask,
                because causal attention never sees padding at the end.
            is_token: False at padding in `ids`, which is at the end of a row; None: no padding.
            cache: for a decoder, from `new_cache`; of the tokens before `ids`.
            has_logits: whether logits are computed, which of a long text take more memory than all
                else; otherwise there are none, of no query.

        Raises:
            ValueError: an encoder–decoder without a target, another kind with one, or a cache for a
                model with an encoder.
        """
        if (target_ids is not None) != (self.config.kind == "encoder-decoder"):
            raise ValueError(f"a model of kind {self.config.kind!r} {_INPUTS[self.config.kind]}")
        if cache is not None and self.config.has_encoder:
            raise ValueError("an encoder has no cache; call encode, and pass the cache to decode")
        if not self.config.has_encoder:
            return self.decode(ids, is_token=is_token, cache=cache, has_logits=has_logits)
        memory, loss = self.encode(ids, is_token=is_token)
        if target_ids is None:
            return Prediction(self._logits(self.encoder, memory.x, has_logits=has_logits), loss)
        logits, decoder_loss, _ = self.decode(target_ids, memory, has_logits=has_logits)
        return Prediction(logits, (loss + decoder_loss) / 2)

    def encode(
        self, ids: Int[Tensor, "batch source"], *, is_token: IsToken | None = None
    ) -> tuple[Memory, Float[Tensor, ""]]:
        """Return the encoder's output for a source, and the balance loss."""
        x, loss = self.encoder(ids, is_token=is_token)
        return Memory(x, is_token), loss

    def decode(
        self,
        ids: Int[Tensor, "batch query"],
        memory: Memory | None = None,
        *,
        is_token: IsToken | None = None,
        cache: Cache | None = None,
        start: int | Tensor | None = None,
        has_logits: bool = True,
    ) -> Prediction:
        """Predict the token after each token.

        Args:
            ids: token ids in [0, vocab_size).
            memory: from `encode`, for an encoder–decoder.
            is_token: False at padding; None: there is no padding.
            cache: from `new_cache`; of the tokens before `ids`, which is extended.
            start: the position of each row's first token; None: that after the cache. The rows of
                a cache that is padded at its beginning, which `is_token` marks over cache and
                `ids`, start at different positions.
            has_logits: as in `forward`.

        Raises:
            ValueError: the model has no decoder, or an encoder–decoder lacks a memory.
        """
        if not self.config.has_decoder:
            raise ValueError("a model of kind 'encoder' has no decoder")
        if self.config.has_encoder and memory is None:
            raise ValueError("a decoder with an encoder needs the memory that encode returns")
        x, loss = self.decoder(ids, is_token=is_token, memory=memory, cache=cache, start=start)
        logits = self._logits(self.decoder, x, has_logits=has_logits)
        reward = self.reward(self.reward_head(x)[..., 0]) if self.config.has_reward else None
        return Prediction(logits, loss, reward)

    def _logits(self, stack: Stack, x: Tensor, *, has_logits: bool) -> Tensor:
        if not has_logits:
            return x.new_empty(len(x), 0, self.config.vocab_size)
        return self.logits(stack.embedding.unembed(x))

    def new_cache(self) -> Cache:
        """Return an empty cache of keys and values, one for each layer of the decoder."""
        return [LayerCache() for _ in range(self.config.n_layers)]

    def weights(self) -> dict[str, Tensor]:
        """Return the trained tensors by name; a tensor that two stacks share is listed once."""
        return dict(self.named_parameters())

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Copy tensors, as `weights` returns them, into the model.

        Raises:
            RuntimeError: a name is missing or unknown, or a shape differs.
        """
        missing = sorted(set(self.weights()) - set(weights))
        if missing:
            raise RuntimeError(f"the weights lack {missing[0]}")
        if unknown := self.load_state_dict(weights, strict=False).unexpected_keys:
            raise RuntimeError(f"the weights hold the unknown {unknown[0]}")

    @property
    def vectors(self) -> Tensor:
        """The token embeddings E (vocab, d_model), which are also the unembedding."""
        stack = self.encoder if self.config.has_encoder else self.decoder
        return stack.embedding.vectors.weight


_INPUTS = {
    "decoder": "takes no target_ids",
    "encoder": "takes no target_ids",
    "encoder-decoder": "needs target_ids",
}


def initialise(model: Transformer, generator: torch.Generator | None = None) -> None:
    """Draw all weights from normal distributions; biases are 0 and scales of norms 1.

    Matrices have a standard deviation of 1/√inputs. Those that write to the residual stream are
    divided by √(2·n_layers), so that the variance of the stream does not grow with depth (Radford
    et al. 2019, section 2.3). Token embeddings have 0.02: small compared to the positional
    encoding, so that heads find positions early, and small enough that a token does not predict
    itself through the matrix that embedding and unembedding share. Learned positions have √0.5, the
    root mean square of the sinusoidal ones.

    Args:
        model: the model; its weights are overwritten.
        generator: of the random numbers; None: PyTorch's global one.
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
            parameter.normal_(0.0, deviation, generator=generator)
