"""One layer: attention, then a feed-forward network or experts, each with its residual."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from model.attention import KeyValueCache, MultiHeadAttention
from model.config import TransformerConfig
from model.experts import Experts, Routed
from model.feed_forward import HookedFeedForward
from model.hooks import HookPoint
from model.norms import LayerNorm


class Residual(nn.Module):
    """The three places where a layer's residual stream can be seen."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.before = HookPoint("batch query d_model", d_model=d_model)
        self.middle = HookPoint("batch query d_model", d_model=d_model)
        self.after = HookPoint("batch query d_model", d_model=d_model)


class DecoderLayer(nn.Module):
    """x + SelfAttention(LN(x)), then x + FeedForward(LN(x)) or x + Experts(LN(x)).

    Normalising before each part (pre-norm) rather than after it, as the paper does, lets the
    residual stream run through all layers unnormalised. Xiong et al. 2020,
    https://arxiv.org/abs/2002.04745.
    """

    def __init__(self, config: TransformerConfig, *, has_experts: bool) -> None:
        super().__init__()
        self.attention_norm = LayerNorm(config.d_model)
        self.self_attention = MultiHeadAttention(config)
        self.feed_forward_norm = LayerNorm(config.d_model)
        if has_experts:
            self.experts = Experts(config)
        else:
            self.feed_forward = HookedFeedForward(config)
        self.has_experts = has_experts
        self.dropout = nn.Dropout(config.dropout)
        self.residual = Residual(config.d_model)

    def forward(
        self, x: Float[Tensor, "batch query d_model"], cache: KeyValueCache | None = None
    ) -> Routed:
        """Read the stream, write to it twice; the balance loss of a dense layer is 0."""
        # 1. Every token reads from the others.
        x = self.residual.before(x)
        x = x + self.dropout(self.self_attention(self.attention_norm(x), cache))
        # 2. Every token works on what it has read.
        x = self.residual.middle(x)
        written, balance_loss = self._transform(self.feed_forward_norm(x))
        return Routed(self.residual.after(x + self.dropout(written)), balance_loss)

    def _transform(self, x: Float[Tensor, "batch query d_model"]) -> Routed:
        if self.has_experts:
            return self.experts(x)
        return Routed(self.feed_forward(x), x.new_zeros(()))
