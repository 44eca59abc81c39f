"""Multi-head attention, in the order of the paper: project, split, attend, join.

    MultiHead(Q, K, V) = Concat(head_1, …, head_h)·W_O
    head_i = Attention(Q·W_Qⁱ, K·W_Kⁱ, V·W_Vⁱ)          Vaswani et al. 2017, section 3.2.2

`kernels.attend` is `Attention`. The hook points are those of `points.HookedAttention`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headlight.model.attention.kernels import IsToken, attend
from headlight.model.attention.points import HookedAttention
from headlight.model.attention.scores import ScoreTerms
from headlight.model.config import TransformerConfig
from headlight.model.positions import alibi_slopes, rotate


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


class MultiHeadAttention(HookedAttention):
    """MultiHead(x) = Concat(head_1, …, head_h)·W_O, each head attending in d_head dimensions.

    With fewer `n_kv_heads` than `n_heads`, neighbouring heads share keys and values: grouped-query
    attention (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245), or multi-query attention
    (Shazeer 2019, https://arxiv.org/abs/1911.02150) with a single one. The sites ``keys`` and
    ``values`` repeat shared keys and values for every head that uses them.

    Args:
        config: the architecture.
        is_causal: whether a query sees only itself and earlier tokens.
        is_cross: whether the keys and values come from another text than the queries. Rotary
            positions and ALiBi then do not apply.
    """

    def __init__(
        self, config: TransformerConfig, *, is_causal: bool = True, is_cross: bool = False
    ) -> None:
        super().__init__(config, is_cross=is_cross)
        self.n_heads, self.n_groups, self.d_head = config.n_heads, config.n_groups, config.d_head
        self.is_causal, self.is_cross = is_causal, is_cross
        d_model, d_groups = config.d_model, config.n_groups * config.d_head
        has_bias = config.attention_bias
        self.query_projection = nn.Linear(d_model, d_model, bias=has_bias)
        self.key_projection = nn.Linear(d_model, d_groups, bias=has_bias)
        self.value_projection = nn.Linear(d_model, d_groups, bias=has_bias)
        self.output_projection = nn.Linear(d_model, d_model, bias=has_bias)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        source: Float[Tensor, "batch source d_model"] | None = None,
        *,
        is_token: IsToken | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Attend from each token of `x` to the tokens of the source, or of the same text.

        Args:
            x: the vectors that queries are made of.
            source: the vectors that keys and values are made of; None: `x`, after the cached ones.
            is_token: False at keys that are padding; None: there is no padding.
            cache: keys and values of earlier tokens. Self-attention extends it; cross-attention
                fills it once.
        """
        # 1. Project every token, and split the result: a query, a key and a value for each head.
        queries = self.queries(self._split(self.query_projection(x)))
        keys, values = self._keys_and_values(x if source is None else source, cache)
        keys, values = self.keys(self._share(keys)), self.values(self._share(values))
        # 2. Turn queries and keys by their positions.
        if self.is_rotary:
            start = keys.shape[-2] - queries.shape[-2]
            queries = self.rotated_queries(rotate(queries, start=start))
            keys = self.rotated_keys(rotate(keys))
        # 3. Attend: match queries with keys, and average the values by the weights.
        terms = ScoreTerms(
            scale=self.d_head**-0.5,
            is_causal=self.is_causal,
            slopes=alibi_slopes(self.n_heads) if self.is_biased else None,
            is_token=is_token,
        )
        context = self.context(attend(queries, keys, values, terms, self.points))
        # 4. Join the heads, and project them to d_model.
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

    def _split(self, x: Float[Tensor, "batch token width"]) -> Tensor:
        by_head: Tensor = x.unflatten(-1, (-1, self.d_head))
        return by_head.transpose(1, 2)  # batch head token d_head

    def _share(self, x: Float[Tensor, "batch group token d_head"]) -> Tensor:
        sharers = self.n_heads // self.n_groups
        return x if sharers == 1 else x.repeat_interleave(sharers, dim=1)
