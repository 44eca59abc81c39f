"""A layer: attention, then a feed-forward network or experts, each with a residual connection."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.attention.kernels import IsToken
from headlight.model.attention.layer import KeyValueCache, MultiHeadAttention
from headlight.model.config import TransformerConfig
from headlight.model.feed_forward import HookedFeedForward
from headlight.model.hooks import HookPoint
from headlight.model.moe import Experts, LayerOutput
from headlight.model.norms import make_norm


class Memory(NamedTuple):
    """The encoder's output, to which the decoder attends.

    ``x`` is (batch, source, d_model). ``is_token`` (batch, source) is False at padding; None: there
    is not padding.
    """

    x: Tensor
    is_token: Tensor | None = None


class LayerCache:
    """The cached keys and values of one layer of a decoder; its length is that of the target."""

    def __init__(self) -> None:
        self.self_attention = KeyValueCache()
        self.cross_attention = KeyValueCache()

    def __len__(self) -> int:
        return len(self.self_attention)


class Residual(nn.Module):
    """The hook points of a layer's residual stream.

    ``before`` self-attention; ``between`` self-attention and cross-attention, if the layer has it;
    in the ``middle``, before the feed-forward network; ``after`` the feed-forward network.
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

    This is the ``pre`` norm: the residual stream itself is not normalised (Xiong et al. 2020,
    https://arxiv.org/abs/2002.04745). The paper's ``post`` norm is LN(x + SelfAttention(x)) and so
    on. The decoder of an encoder–decoder has cross-attention between the two parts.

    Args:
        config: the architecture.
        is_causal: whether a token sees only itself and earlier tokens.
        has_cross_attention: whether the layer attends to an encoder's output.
        has_experts: whether experts replace the feed-forward network.
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
    ) -> LayerOutput:
        """Add the outputs of the layer's parts to the residual stream.

        Args:
            x: the residual stream.
            is_token: False at padding; None: there is no padding.
            memory: the encoder's output, for cross-attention.
            cache: keys and values of the tokens before `x`, which is extended.

        Returns:
            The stream after the layer, and the balance loss; 0 for a dense layer.
        """
        # 1. Self-attention.
        x = self.residual.before(x)
        update = self.self_attention(
            self._before(x, self.attention_norm),
            is_token=is_token,
            cache=None if cache is None else cache.self_attention,
        )
        x = self._after(x + self.dropout(update), self.attention_norm)
        # 2. Cross-attention to the encoder's output.
        if self.has_cross_attention:
            assert memory is not None
            x = self.residual.between(x)
            update = self.cross_attention(
                self._before(x, self.cross_attention_norm),
                memory.x,
                is_token=memory.is_token,
                cache=None if cache is None else cache.cross_attention,
            )
            x = self._after(x + self.dropout(update), self.cross_attention_norm)
        # 3. The feed-forward network or the experts.
        x = self.residual.middle(x)
        update, loss = self._transform(self._before(x, self.feed_forward_norm), is_token)
        x = self._after(x + self.dropout(update), self.feed_forward_norm)
        return LayerOutput(self.residual.after(x), loss)

    def _before(self, x: Tensor, norm: nn.Module) -> Tensor:
        return norm(x) if self.is_pre_norm else x

    def _after(self, x: Tensor, norm: nn.Module) -> Tensor:
        return x if self.is_pre_norm else norm(x)

    def _transform(self, x: Tensor, is_token: IsToken | None) -> LayerOutput:
        if self.has_experts:
            is_query = None if is_token is None else is_token[:, -x.shape[1] :]
            output: LayerOutput = self.experts(x, is_query)
            return output
        return LayerOutput(self.feed_forward(x), x.new_zeros(()))
