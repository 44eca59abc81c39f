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
from jaxtyping import Bool, Float
from torch import Tensor, nn

from model.config import TransformerConfig
from model.hooks import HookPoint, watched_heads


def attention_scores(
    queries: Float[Tensor, "*batch query d_head"],
    keys: Float[Tensor, "*batch key d_head"],
    mask: Bool[Tensor, "query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Q·Kᵀ/√d_k, and −∞ where the mask is False: how well each query matches each key.

    In float32 or better, so that whoever has the queries and keys can recompute them.
    """
    queries, keys = _at_least_float32(queries), _at_least_float32(keys)
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def attention_weights(
    scores: Float[Tensor, "*batch query key"],
) -> Float[Tensor, "*batch query key"]:
    """The softmax over the keys: each query's row becomes non-negative and sums to 1.

    In float32 or better, because in bfloat16 a row would miss 1 by half a percent.
    """
    return _at_least_float32(scores).softmax(dim=-1)


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


class MultiHeadAttention(nn.Module):
    """MultiHead(x) = Concat(head_1, …, head_h)·W_O, each head attending in d_head dimensions.

    Vaswani et al. 2017, section 3.2.2; causal, as in the decoder.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        d_model, n_heads, d_head = config.d_model, config.n_heads, config.d_head
        self.n_heads = n_heads
        self.query_projection = nn.Linear(d_model, d_model, bias=False)
        self.key_projection = nn.Linear(d_model, d_model, bias=False)
        self.value_projection = nn.Linear(d_model, d_model, bias=False)
        self.output_projection = nn.Linear(d_model, d_model, bias=False)
        self.queries = HookPoint("batch head query d_head", head=n_heads, d_head=d_head)
        self.keys = HookPoint("batch head key d_head", head=n_heads, d_head=d_head)
        self.values = HookPoint("batch head key d_head", head=n_heads, d_head=d_head)
        self.scores = HookPoint("batch head query key", head=n_heads)
        self.weights = HookPoint("batch head query key", head=n_heads)
        self.context = HookPoint("batch head query d_head", head=n_heads, d_head=d_head)
        self.output = HookPoint("batch query d_model", d_model=d_model)

    def forward(
        self, x: Float[Tensor, "batch query d_model"], cache: KeyValueCache | None = None
    ) -> Float[Tensor, "batch query d_model"]:
        """Let every token attend to itself and to those before it, cached ones included."""
        # 1. Project every token to a query, a key and a value for each head.
        queries = self.queries(self._split(self.query_projection(x)))
        keys = self._split(self.key_projection(x))
        values = self._split(self.value_projection(x))
        if cache is not None:
            keys, values = cache.extend(keys, values)
        keys, values = self.keys(keys), self.values(values)
        # 2. Match queries with keys, and mix the values by how well they match.
        context = self.context(self._attend(queries, keys, values))
        # 3. Put the heads side by side again and mix them.
        return self.output(self.output_projection(context.transpose(1, 2).flatten(-2)))

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        watched = watched_heads((self.scores, self.weights), self.n_heads)
        if not watched:
            return fused_attention(queries, keys, values)
        if len(watched) == self.n_heads:
            return self._attend_step_by_step(queries, keys, values)
        seen = list(watched)
        unseen = [head for head in range(self.n_heads) if head not in watched]
        context = torch.empty_like(queries)
        context[:, seen] = self._attend_step_by_step(
            queries[:, seen], keys[:, seen], values[:, seen], watched
        )
        context[:, unseen] = fused_attention(queries[:, unseen], keys[:, unseen], values[:, unseen])
        return context

    def _attend_step_by_step(
        self, queries: Tensor, keys: Tensor, values: Tensor, heads: tuple[int, ...] | None = None
    ) -> Tensor:
        mask = causal_mask(queries.shape[-2], keys.shape[-2], queries.device)
        scores = self.scores(attention_scores(queries, keys, mask), heads)
        weights = self.weights(attention_weights(scores), heads)
        return (weights @ _at_least_float32(values)).to(values.dtype)

    def _split(self, x: Float[Tensor, "batch token d_model"]) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # batch head token d_head


def fused_attention(
    queries: Float[Tensor, "batch head query d_head"],
    keys: Float[Tensor, "batch head key d_head"],
    values: Float[Tensor, "batch head key d_head"],
) -> Float[Tensor, "batch head query d_head"]:
    """The context of causal attention in one kernel that never writes the weights to memory."""
    n_queries, n_keys = queries.shape[-2], keys.shape[-2]
    if n_queries == n_keys:
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    mask = causal_mask(n_queries, n_keys, queries.device)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
