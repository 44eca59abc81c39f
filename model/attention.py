"""Scaled dot-product attention and its multi-head form, with every step open to view.

    Attention(Q, K, V) = softmax(Q·Kᵀ/√d_k)·V          Vaswani et al. 2017, section 3.2

Rows are queries (the token that attends), columns are keys (the token attended to); every row of
the weights sums to 1. Heads that nobody looks at run through PyTorch's fused kernel, the others
step by step; both give the same numbers.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headlight.model.config import TransformerConfig
from headlight.model.hooks import HookPoint, watched_heads
from headlight.model.positions import alibi_bias, rotate


def attention_scores(
    queries: Float[Tensor, "*batch query d_head"],
    keys: Float[Tensor, "*batch key d_head"],
    mask: Bool[Tensor, "#*batch query key"] | None = None,
    bias: Float[Tensor, "#*batch query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Q·Kᵀ/√d_k + bias, and −∞ where the mask is False: how well each query matches each key.

    In float32 or better, so that whoever has the queries and keys can recompute them.
    """
    queries, keys = _at_least_float32(queries), _at_least_float32(keys)
    scores = queries @ keys.transpose(-2, -1)
    # From here on in place: a second tensor of this size takes longer to get than to fill.
    scores /= math.sqrt(queries.shape[-1])
    if bias is not None:
        scores += bias
    if mask is not None:
        scores += torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)
    return scores


def attention_weights(
    scores: Float[Tensor, "*batch query key"], *, in_place: bool = False
) -> Float[Tensor, "*batch query key"]:
    """The softmax over the keys: each query's row becomes non-negative and sums to 1.

    In float32 or better, because in bfloat16 a row would miss 1 by half a percent.

    Args:
        scores: how well each query matches each key.
        in_place: whether to write over the scores, where nobody will look at them or at gradients.
    """
    scores = _at_least_float32(scores)
    return torch.softmax(scores, dim=-1, out=scores if in_place else None)


def _at_least_float32(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def causal_mask(
    n_queries: int, n_keys: int, device: torch.device | None = None
) -> Bool[Tensor, "query key"]:
    """True where a query may look: at itself and at what came before.

    The queries are the last `n_queries` of the `n_keys` tokens.
    """
    allowed = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device)
    return allowed.tril(diagonal=n_keys - n_queries)


IsToken = Bool[Tensor, "batch key"]
"""True where a row holds a token, False where it is padded; the padding follows the tokens."""


def attention_mask(
    n_queries: int,
    n_keys: int,
    *,
    is_causal: bool,
    is_token: IsToken | None = None,
    device: torch.device | None = None,
) -> Bool[Tensor, "*batch query key"] | None:
    """Where a query may look: never at padding and, if causal, never ahead. None: everywhere.

    Shaped (query, key), or (batch, 1, query, key) where rows are padded.
    """
    mask = causal_mask(n_queries, n_keys, device) if is_causal else None
    if is_token is None:
        return mask
    padding = is_token[:, None, None, :].expand(-1, -1, n_queries, -1)
    return padding if mask is None else padding & mask


class KeyValueCache:
    """The keys and values of the tokens that one attention has read so far."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.keys is None else self.keys.shape[-2]

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append the new tokens' keys and values; return those of all tokens."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=-2)
            values = torch.cat([self.values, values], dim=-2)
        self.keys, self.values = keys, values
        return keys, values

    def select(self, rows: Int[Tensor, " row"]) -> None:
        """Keep these rows of the batch, in this order."""
        assert self.keys is not None
        assert self.values is not None
        self.keys, self.values = self.keys[rows], self.values[rows]


class MultiHeadAttention(nn.Module):
    """MultiHead(x) = Concat(head_1, …, head_h)·W_O, each head attending in d_head dimensions.

    Vaswani et al. 2017, section 3.2.2. With fewer `n_kv_heads` than `n_heads`, neighbouring heads
    share keys and values: grouped-query attention (Ainslie et al. 2023,
    https://arxiv.org/abs/2305.13245), or multi-query where there is one. The sites ``keys`` and
    ``values`` show for every head those that it uses.

    Args:
        config: the architecture.
        is_causal: whether a token sees only itself and what came before.
        is_cross: whether queries come from one text and keys and values from another; such an
            attention knows no positions.
    """

    def __init__(
        self, config: TransformerConfig, *, is_causal: bool = True, is_cross: bool = False
    ) -> None:
        super().__init__()
        d_model, n_heads, d_head = config.d_model, config.n_heads, config.d_head
        d_groups, has_bias = config.n_groups * d_head, config.attention_bias
        self.n_heads, self.n_groups = n_heads, config.n_groups
        self.is_causal, self.is_cross = is_causal, is_cross
        self.is_rotary = config.positional == "rotary" and not is_cross
        self.is_biased = config.positional == "alibi" and not is_cross
        self.query_projection = nn.Linear(d_model, d_model, bias=has_bias)
        self.key_projection = nn.Linear(d_model, d_groups, bias=has_bias)
        self.value_projection = nn.Linear(d_model, d_groups, bias=has_bias)
        self.output_projection = nn.Linear(d_model, d_model, bias=has_bias)
        self.queries = HookPoint("batch head query d_head", head=n_heads, d_head=d_head)
        self.keys = HookPoint("batch head key d_head", head=n_heads, d_head=d_head)
        self.values = HookPoint("batch head key d_head", head=n_heads, d_head=d_head)
        if self.is_rotary:
            self.rotated_queries = HookPoint("batch head query d_head", head=n_heads, d_head=d_head)
            self.rotated_keys = HookPoint("batch head key d_head", head=n_heads, d_head=d_head)
        if self.is_biased:
            self.bias = HookPoint("head query key", head=n_heads)
        self.scores = HookPoint("batch head query key", head=n_heads)
        self.weights = HookPoint("batch head query key", head=n_heads)
        self.context = HookPoint("batch head query d_head", head=n_heads, d_head=d_head)
        self.output = HookPoint("batch query d_model", d_model=d_model)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        source: Float[Tensor, "batch source d_model"] | None = None,
        *,
        is_token: IsToken | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Let every token attend to the source's tokens, or to those of its own text.

        Args:
            x: what asks.
            source: what is looked at; None: `x` itself, and what the cache holds from before.
            is_token: which keys are tokens; None: all.
            cache: keys and values from before; it is extended, or, where the attention looks at
                another text, filled once.
        """
        # 1. Project every token to a query, a key and a value for each head.
        queries = self.queries(self._split(self.query_projection(x)))
        keys, values = self._keys_and_values(x if source is None else source, cache)
        keys, values = self.keys(self._share(keys)), self.values(self._share(values))
        # 2. Match queries with keys, and mix the values by how well they match.
        if self.is_rotary:
            start = keys.shape[-2] - queries.shape[-2]
            queries = self.rotated_queries(rotate(queries, start=start))
            keys = self.rotated_keys(rotate(keys))
        context = self.context(self._attend(queries, keys, values, is_token))
        # 3. Put the heads side by side again and mix them.
        return self.output(self.output_projection(context.transpose(1, 2).flatten(-2)))

    def _keys_and_values(
        self, source: Float[Tensor, "batch source d_model"], cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor]:
        if self.is_cross and cache is not None and cache.keys is not None:
            assert cache.values is not None
            return cache.keys, cache.values
        keys = self._split(self.key_projection(source))
        values = self._split(self.value_projection(source))
        return (keys, values) if cache is None else cache.extend(keys, values)

    def _attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, is_token: IsToken | None
    ) -> Tensor:
        n_queries, n_keys = queries.shape[-2], keys.shape[-2]
        bias = None
        if self.is_biased:
            bias = self.bias(alibi_bias(self.n_heads, n_queries, n_keys, keys.device))
        watched = watched_heads((self.scores, self.weights), self.n_heads)
        is_plain = self.is_causal and n_queries == n_keys and is_token is None and bias is None
        if (
            is_plain and not watched
        ):  # the kernel knows this mask by itself, and skips what it hides
            return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        mask = attention_mask(
            n_queries, n_keys, is_causal=self.is_causal, is_token=is_token, device=keys.device
        )
        if not watched:
            return fused_attention(queries, keys, values, mask, bias)
        if len(watched) == self.n_heads:
            return self._attend_step_by_step(queries, keys, values, mask, bias)
        seen = list(watched)
        unseen = [head for head in range(self.n_heads) if head not in watched]
        context = torch.empty_like(queries)
        context[:, seen] = self._attend_step_by_step(
            queries[:, seen], keys[:, seen], values[:, seen], mask, _of(bias, seen), watched
        )
        context[:, unseen] = fused_attention(
            queries[:, unseen], keys[:, unseen], values[:, unseen], mask, _of(bias, unseen)
        )
        return context

    def _attend_step_by_step(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        heads: tuple[int, ...] | None = None,
    ) -> Tensor:
        scores = self.scores(attention_scores(queries, keys, mask, bias), heads)
        is_done = not (torch.is_grad_enabled() or watched_heads((self.scores,), self.n_heads))
        weights = self.weights(attention_weights(scores, in_place=is_done), heads)
        return (weights @ _at_least_float32(values)).to(values.dtype)

    def _split(self, x: Float[Tensor, "batch token width"]) -> Tensor:
        d_head = self.query_projection.out_features // self.n_heads
        return x.unflatten(-1, (-1, d_head)).transpose(1, 2)  # batch head token d_head

    def _share(self, x: Float[Tensor, "batch group token d_head"]) -> Tensor:
        sharers = self.n_heads // self.n_groups
        return x if sharers == 1 else x.repeat_interleave(sharers, dim=1)


def _of(bias: Tensor | None, heads: list[int]) -> Tensor | None:
    return None if bias is None else bias[heads]


def fused_attention(
    queries: Float[Tensor, "batch head query d_head"],
    keys: Float[Tensor, "batch head key d_head"],
    values: Float[Tensor, "batch head key d_head"],
    mask: Bool[Tensor, "*rows query key"] | None = None,
    bias: Float[Tensor, "head query key"] | None = None,
) -> Float[Tensor, "batch head query d_head"]:
    """The context in one kernel that never writes the weights to memory.

    Args:
        queries: what asks.
        keys: what answers.
        values: what is mixed.
        mask: where a query may look; None: everywhere.
        bias: added to the scores.
    """
    if bias is not None:
        bias = bias if mask is None else bias.masked_fill(~mask, -math.inf)
        return F.scaled_dot_product_attention(queries, keys, values, bias.to(queries.dtype))
    return F.scaled_dot_product_attention(queries, keys, values, mask)
