"""Scaled dot-product attention and multi-head attention.

    Attention(Q, K, V) = softmax(Q·Kᵀ/√d_k)·V          Vaswani et al. 2017, section 3.2

Rows are queries (the tokens that attend), columns are keys (the tokens attended to); every row of
the weights sums to 1. Heads whose scores or weights are captured or edited are computed step by
step, all others by PyTorch's fused kernel; both give the same numbers. Of long texts, rows and
pooled maps are observed block by block (`blockwise_attention`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headlight.model.attention.blockwise import blockwise_attention
from headlight.model.attention.terms import ScoreTerms
from headlight.model.config import TransformerConfig
from headlight.model.hooks import HookPoint, hooked_heads, is_edited, is_hooked, site_of
from headlight.model.observation import OBSERVED_AXES, keep_attention, observe_whole
from headlight.model.positions import alibi_bias, alibi_slopes, rotate

WHOLE_ELEMENTS = 2**22
"""The elements of a bias or a mask beyond which attention runs in blocks, which need neither."""


def attention_scores(
    queries: Float[Tensor, "*batch query d_head"],
    keys: Float[Tensor, "*batch key d_head"],
    mask: Bool[Tensor, "#*batch query key"] | None = None,
    bias: Float[Tensor, "#*batch query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Q·Kᵀ/√d_k + bias, and −∞ where the mask is False.

    In float32 or better, so that the captured scores can be recomputed from queries and keys.
    """
    queries, keys = _at_least_float32(queries), _at_least_float32(keys)
    scores = queries @ keys.transpose(-2, -1)
    # In place from here on: allocating a second tensor of this size takes longer than filling it.
    scores /= math.sqrt(queries.shape[-1])
    if bias is not None:
        scores += bias
    if mask is not None:
        scores += torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)
    return scores


def attention_weights(
    scores: Float[Tensor, "*batch query key"], *, in_place: bool = False
) -> Float[Tensor, "*batch query key"]:
    """The softmax over the keys: each row is non-negative and sums to 1.

    In float32 or better: in bfloat16 the sum of a row would differ from 1 by half a percent.

    Args:
        scores: scaled and masked.
        in_place: whether to overwrite the scores, if neither they nor gradients are needed.
    """
    scores = _at_least_float32(scores)
    return torch.softmax(scores, dim=-1, out=scores if in_place else None)


def _at_least_float32(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def causal_mask(
    n_queries: int, n_keys: int, device: torch.device | None = None
) -> Bool[Tensor, "query key"]:
    """True where the key is not after the query.

    The queries are the last `n_queries` of the `n_keys` tokens.
    """
    allowed = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device)
    return allowed.tril(diagonal=n_keys - n_queries)


IsToken = Bool[Tensor, "batch key"]
"""True at tokens, False at padding."""


def attention_mask(
    n_queries: int,
    n_keys: int,
    *,
    is_causal: bool,
    is_token: IsToken | None = None,
    device: torch.device | None = None,
) -> Bool[Tensor, "*batch query key"] | None:
    """The mask of padding and, if causal, of later tokens; None if nothing is masked.

    Of shape (query, key), or (batch, 1, query, key) with padding.
    """
    mask = causal_mask(n_queries, n_keys, device) if is_causal else None
    if is_token is None:
        return mask
    padding = is_token[:, None, None, :].expand(-1, -1, n_queries, -1)
    return padding if mask is None else padding & mask


class KeyValueCache:
    """The keys and values of all tokens that one attention has read."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.keys is None else self.keys.shape[-2]

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values along the tokens; return those of all tokens."""
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
    https://arxiv.org/abs/2305.13245), or multi-query attention (Shazeer 2019,
    https://arxiv.org/abs/1911.02150) with a single one. The sites ``keys`` and ``values`` repeat
    shared keys and values for every head that uses them.

    Args:
        config: the architecture.
        is_causal: whether a query sees only itself and earlier tokens.
        is_cross: whether the keys and values come from another text than the queries. Rotary
            positions and ALiBi then do not apply.
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
        self.entropy = HookPoint(OBSERVED_AXES["entropy"], head=n_heads)
        self.first_token = HookPoint(OBSERVED_AXES["first_token"], head=n_heads)
        if not is_cross:
            self.mean_distance = HookPoint(OBSERVED_AXES["mean_distance"], head=n_heads)
        self.logsumexp = HookPoint(OBSERVED_AXES["logsumexp"], head=n_heads)
        self.mean_map = HookPoint(OBSERVED_AXES["mean_map"], head=n_heads)
        self.max_map = HookPoint(OBSERVED_AXES["max_map"], head=n_heads)
        self.rows = HookPoint(OBSERVED_AXES["rows"], head=n_heads)
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
        """Attend from each token of `x` to the tokens of the source, or of its own text.

        Args:
            x: the vectors that queries are made of.
            source: the vectors that keys and values are made of; None: `x`, after the cached ones.
            is_token: False at keys that are padding; None: there is no padding.
            cache: keys and values of earlier tokens. Self-attention extends it; cross-attention
                fills it once.
        """
        # 1. Project every token to a query, a key and a value for each head.
        queries = self.queries(self._split(self.query_projection(x)))
        keys, values = self._keys_and_values(x if source is None else source, cache)
        keys, values = self.keys(self._share(keys)), self.values(self._share(values))
        # 2. Match queries with keys, and average the values by the weights.
        if self.is_rotary:
            start = keys.shape[-2] - queries.shape[-2]
            queries = self.rotated_queries(rotate(queries, start=start))
            keys = self.rotated_keys(rotate(keys))
        context = self.context(self._attend(queries, keys, values, is_token))
        # 3. Concatenate the heads and project them to d_model.
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
        hooked = hooked_heads((self.scores, self.weights), self.n_heads)
        observed = self._observed()
        is_long = n_queries == n_keys or not self.is_causal  # a whole text, not a step of decoding
        is_changed = hooked or (self.is_biased and is_hooked(self.bias))
        is_long = is_long and not (is_changed or torch.is_grad_enabled())
        if is_long and (observed or self._needs_blocks(n_queries, n_keys, is_token)):
            return self._attend_in_blocks(queries, keys, values, is_token, observed)
        bias = None
        if self.is_biased:
            bias = self.bias(alibi_bias(self.n_heads, n_queries, n_keys, keys.device))
        is_plain = self.is_causal and n_queries == n_keys and is_token is None and bias is None
        if is_plain and not (hooked or observed):  # the kernel has this mask built in
            return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        mask = attention_mask(
            n_queries, n_keys, is_causal=self.is_causal, is_token=is_token, device=keys.device
        )
        if not (hooked or observed):
            return fused_attention(queries, keys, values, mask, bias)
        if observed or len(hooked) == self.n_heads:
            terms = self._terms(is_token)
            return self._attend_step_by_step(
                queries, keys, values, mask, bias, terms=terms, observed=observed
            )
        some = list(hooked)
        others = [head for head in range(self.n_heads) if head not in hooked]
        context = torch.empty_like(queries)
        context[:, some] = self._attend_step_by_step(
            queries[:, some], keys[:, some], values[:, some], mask, _of(bias, some), hooked
        )
        context[:, others] = fused_attention(
            queries[:, others], keys[:, others], values[:, others], mask, _of(bias, others)
        )
        return context

    def _needs_blocks(self, n_queries: int, n_keys: int, is_token: IsToken | None) -> bool:
        """Whether the kernel would need a bias or a mask that is too large."""
        has_matrix = self.is_biased or is_token is not None
        return has_matrix and n_queries * n_keys > WHOLE_ELEMENTS

    def _observed(self) -> list[str]:
        """The names of the numbers of rows, the maps and the rows that the pass observes."""
        points = ((name, getattr(self, name, None)) for name in OBSERVED_AXES)
        return [name for name, point in points if point is not None and is_hooked(point)]

    def _attend_in_blocks(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        is_token: IsToken | None,
        observed: list[str],
    ) -> Tensor:
        terms, path = self._terms(is_token), self._path(observed)
        # Heads that share keys have equal ones; the blocks need each once.
        sharers = self.n_heads // self.n_groups
        context, found = blockwise_attention(
            queries, keys[:, ::sharers], values[:, ::sharers], terms, observed, path=path
        )
        for name, tensor in found.items():
            getattr(self, name)(tensor)
        return context

    def _terms(self, is_token: IsToken | None) -> ScoreTerms:
        return ScoreTerms(
            scale=(self.query_projection.out_features // self.n_heads) ** -0.5,
            is_causal=self.is_causal,
            slopes=alibi_slopes(self.n_heads) if self.is_biased else None,
            is_token=is_token,
        )

    def _path(self, observed: Sequence[str]) -> str | None:
        """The path of this attention, if something of it is observed."""
        return site_of(getattr(self, observed[0])).rpartition(".")[0] if observed else None

    def _attend_step_by_step(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        heads: tuple[int, ...] | None = None,
        terms: ScoreTerms | None = None,
        observed: Sequence[str] = (),
    ) -> Tensor:
        scores = self.scores(attention_scores(queries, keys, mask, bias), heads)
        is_free = not (torch.is_grad_enabled() or hooked_heads((self.scores,), self.n_heads))
        is_free = is_free and "logsumexp" not in observed
        edited = (self.scores, self.weights, *((self.bias,) if self.is_biased else ()))
        if observed and terms is not None and not any(map(is_edited, edited)):
            keep_attention(self._path(observed), queries, keys, scores, terms)
        weights = self.weights(attention_weights(scores, in_place=is_free), heads)
        for name, tensor in observe_whole(weights, scores, observed).items() if observed else ():
            getattr(self, name)(tensor)
        return (weights @ _at_least_float32(values)).to(values.dtype)

    def _split(self, x: Float[Tensor, "batch token width"]) -> Tensor:
        d_head = self.query_projection.out_features // self.n_heads
        by_head: Tensor = x.unflatten(-1, (-1, d_head))
        return by_head.transpose(1, 2)  # batch head token d_head

    def _share(self, x: Float[Tensor, "batch group token d_head"]) -> Tensor:
        sharers = self.n_heads // self.n_groups
        return x if sharers == 1 else x.repeat_interleave(sharers, dim=1)


def _of(bias: Tensor | None, heads: list[int]) -> Tensor | None:
    return None if bias is None else bias[heads]


def fused_attention(
    queries: Float[Tensor, "batch head query d_head"],
    keys: Float[Tensor, "batch head key d_head"],
    values: Float[Tensor, "batch head key d_head"],
    mask: Bool[Tensor, "*rows query key"] | None,
    bias: Float[Tensor, "head query key"] | None,
) -> Float[Tensor, "batch head query d_head"]:
    """The context by one kernel, which never writes the weights to memory.

    Args:
        queries: of all heads.
        keys: of all heads; shared ones repeated.
        values: of all heads; shared ones repeated.
        mask: True where a query sees a key; None: everywhere.
        bias: added to the scores.
    """
    if bias is not None:
        bias = bias if mask is None else bias.masked_fill(~mask, -math.inf)
        return F.scaled_dot_product_attention(queries, keys, values, bias.to(queries.dtype))
    return F.scaled_dot_product_attention(queries, keys, values, mask)
