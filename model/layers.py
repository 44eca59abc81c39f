"""One layer: attention, then a feed-forward network or experts, each with its residual."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.attention import IsToken, KeyValueCache, MultiHeadAttention
from headlight.model.config import TransformerConfig
from headlight.model.feed_forward import HookedFeedForward
from headlight.model.hooks import HookPoint
from headlight.model.moe import Experts, Routed
from headlight.model.norms import make_norm


class Memory(NamedTuple):
    """What a decoder looks at: the encoder's output (batch, source, d_model), and its tokens.

    ``is_token`` (batch, source) is False at padding; None: there is none.
    """

    x: Tensor
    is_token: Tensor | None = None


class LayerCache:
    """The keys and values that a decoder's layer has computed so far."""

    def __init__(self) -> None:
        self.self_attention = KeyValueCache()
        self.cross_attention = KeyValueCache()

    def __len__(self) -> int:
        return len(self.self_attention)


class Residual(nn.Module):
    """The places where a layer's residual stream can be seen.

    ``before`` everything, ``between`` self-attention and cross-attention where there is one, in
    the ``middle``, before the feed-forward network, and ``after`` it.
    """

    def __init__(self, d_model: int, *, has_cross_attention: bool) -> None:
        super().__init__()
        self.before = HookPoint("batch query d_model", d_model=d_model)
        if has_cross_attention:
            self.between = HookPoint("batch query d_model", d_model=d_model)
        self.middle = HookPoint("batch query d_model", d_model=d_model)
        self.after = HookPoint("batch query d_model", d_model=d_model)


class TransformerLayer(nn.Module):
    """x + SelfAttention(LN(x)), then x + FeedForward(LN(x)) or x + Experts(LN(x)).

    That is the ``pre`` norm: the residual stream runs through all layers unnormalised (Xiong et
    al. 2020, https://arxiv.org/abs/2002.04745). With the ``post`` norm of the paper it is
    LN(x + SelfAttention(x)) and so on. A decoder beside an encoder has cross-attention between
    the two.

    Args:
        config: the architecture.
        is_causal: whether a token sees only itself and what came before.
        has_cross_attention: whether there is an encoder to look at.
        has_experts: whether experts stand in for the feed-forward network.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        is_causal: bool = True,
        has_cross_attention: bool = False,
        has_experts: bool = False,
    ) -> None:
        super().__init__()
        self.is_pre_norm = config.norm_place == "pre"
        self.has_cross_attention, self.has_experts = has_cross_attention, has_experts
        self.attention_norm = make_norm(config)
        self.self_attention = MultiHeadAttention(config, is_causal=is_causal)
        if has_cross_attention:
            self.cross_attention_norm = make_norm(config)
            self.cross_attention = MultiHeadAttention(config, is_causal=False, is_cross=True)
        self.feed_forward_norm = make_norm(config)
        if has_experts:
            self.experts = Experts(config)
        else:
            self.feed_forward = HookedFeedForward(config)
        self.dropout = nn.Dropout(config.dropout)
        self.residual = Residual(config.d_model, has_cross_attention=has_cross_attention)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        *,
        is_token: IsToken | None = None,
        memory: Memory | None = None,
        cache: LayerCache | None = None,
    ) -> Routed:
        """Read the stream, write to it twice or thrice; the balance loss of a dense layer is 0.

        Args:
            x: the stream.
            is_token: which rows of the stream are tokens; None: all.
            memory: what cross-attention looks at.
            cache: keys and values of the tokens before `x`.
        """
        # 1. Every token reads from the others.
        x = self.residual.before(x)
        read = self.self_attention(
            self._enter(x, self.attention_norm),
            is_token=is_token,
            cache=None if cache is None else cache.self_attention,
        )
        x = self._leave(x + self.dropout(read), self.attention_norm)
        # 2. It reads from the encoder's text.
        if self.has_cross_attention:
            assert memory is not None
            x = self.residual.between(x)
            read = self.cross_attention(
                self._enter(x, self.cross_attention_norm),
                memory.x,
                is_token=memory.is_token,
                cache=None if cache is None else cache.cross_attention,
            )
            x = self._leave(x + self.dropout(read), self.cross_attention_norm)
        # 3. It works on what it has read.
        x = self.residual.middle(x)
        written, loss = self._transform(self._enter(x, self.feed_forward_norm), is_token)
        x = self._leave(x + self.dropout(written), self.feed_forward_norm)
        return Routed(self.residual.after(x), loss)

    def _enter(self, x: Tensor, norm: nn.Module) -> Tensor:
        return norm(x) if self.is_pre_norm else x

    def _leave(self, x: Tensor, norm: nn.Module) -> Tensor:
        return x if self.is_pre_norm else norm(x)

    def _transform(self, x: Tensor, is_token: IsToken | None) -> Routed:
        if self.has_experts:
            return self.experts(x, is_token)
        return Routed(self.feed_forward(x), x.new_zeros(()))
