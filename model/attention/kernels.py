"""Scaled dot-product attention, by one of three kernels that give the same numbers.

    Attention(Q, K, V) = softmax(Q·Kᵀ/√d_k)·V          Vaswani et al. 2017, section 3.2

Rows are queries (the tokens that attend), columns are keys (the tokens attended to); every row of
the weights sums to 1. `attend` is the only place where a kernel is chosen, for models of this
project and of other libraries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from headlight.model.attention.blockwise import blockwise_attention
from headlight.model.attention.observer import keep_attention, observe_whole
from headlight.model.attention.points import SoftmaxPoints
from headlight.model.attention.scores import ScoreTerms
from headlight.model.hooks import hooked_heads
from headlight.model.positions import alibi_bias

Kernel: TypeAlias = Callable[[Tensor, Tensor, Tensor, ScoreTerms, SoftmaxPoints], Tensor]
"""Queries, keys, values, the terms and the points → the context (batch head query d_head)."""

IsToken = Bool[Tensor, "batch key"]
"""True at tokens, False at padding."""


class Kernels(NamedTuple):
    """The kernels that show weights: ``in_blocks`` rows and maps of them, ``whole`` all of them."""

    in_blocks: Kernel
    whole: Kernel


def attend(
    queries: Float[Tensor, "batch head query d_head"],
    keys: Float[Tensor, "batch group key d_head"],
    values: Float[Tensor, "batch group key d_value"],
    terms: ScoreTerms,
    points: SoftmaxPoints,
    kernels: Kernels | None = None,
) -> Float[Tensor, "batch head query d_value"]:
    """Average the values by the softmax of the scores, by the cheapest kernel that will do.

    Args:
        queries: of all heads.
        keys: of all heads, or of each group of heads that share them.
        values: as the keys.
        terms: of the scores.
        points: through which scores, weights and what is observed of them pass.
        kernels: of a model file that computes its weights itself; None: those of this project.
    """
    n_queries, n_keys = queries.shape[-2], keys.shape[-2]
    kernels = kernels or OURS
    # 1. In blocks: rows and maps of the weights of a whole text, which is no step of decoding.
    is_text = not terms.is_causal or n_queries == n_keys  # two open lengths are not compared
    wants_blocks = is_text and points.wants_blocks(terms, n_queries, n_keys)
    if wants_blocks and not (points.needs_matrix or torch.is_grad_enabled()):
        return kernels.in_blocks(queries, keys, values, terms, points)
    # 2. Fused: nothing of the weights is asked for, so they are never written to memory.
    if points.may_fuse and not points.sees_weights:
        return _fused(queries, keys, values, terms, points)
    # 3. Whole: the scores and weights of every query and key.
    return kernels.whole(queries, keys, values, terms, points)


# --- in blocks ------------------------------------------------------------------------------------


def attend_in_blocks(
    queries: Tensor, keys: Tensor, values: Tensor, terms: ScoreTerms, points: SoftmaxPoints
) -> Tensor:
    """Observe the weights block by block (`blockwise_attention`)."""
    names = points.observed_names
    if points.has_equal_keys:  # the blocks need those of each group once
        sharers = keys.shape[1] // points.n_groups
        keys, values = keys[:, ::sharers], values[:, ::sharers]
    path = points.path if names else None
    context, observed = blockwise_attention(queries, keys, values, terms, names, path=path)
    points.report(observed)
    return context


# --- fused ----------------------------------------------------------------------------------------


def _fused(
    queries: Tensor, keys: Tensor, values: Tensor, terms: ScoreTerms, points: SoftmaxPoints
) -> Tensor:
    n_queries, n_keys = queries.shape[-2], keys.shape[-2]
    bias = _bias(terms, points, n_queries, n_keys, keys.device)
    has_mask = terms.mask is not None or terms.is_token is not None or bias is not None
    if terms.is_causal and n_queries == n_keys and not has_mask:  # the kernel has it built in
        return F.scaled_dot_product_attention(
            queries, keys, values, is_causal=True, scale=terms.scale
        )
    mask = _mask(terms, n_queries, n_keys, keys.device)
    return fused_attention(queries, keys, values, mask, bias, scale=terms.scale)


def fused_attention(
    queries: Float[Tensor, "batch head query d_head"],
    keys: Float[Tensor, "batch group key d_head"],
    values: Float[Tensor, "batch group key d_value"],
    mask: Tensor | None,
    bias: Float[Tensor, "head query key"] | None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "batch head query d_value"]:
    """Return the context by one kernel, which never writes the weights to memory.

    Args:
        queries: of all heads.
        keys: of all heads or groups.
        values: of all heads or groups.
        mask: True where a query sees a key, or added to the scores; None: nothing is masked.
        bias: added to the scores, next to a mask of truth values.
        scale: the factor of Q·Kᵀ; None: 1/√d_head.
    """
    if bias is not None:
        bias = bias if mask is None else bias.masked_fill(~mask, -math.inf)
        mask = bias.to(queries.dtype)
    is_shared = keys.shape[1] != queries.shape[1]
    return F.scaled_dot_product_attention(
        queries, keys, values, mask, scale=scale, enable_gqa=is_shared
    )


# --- whole ----------------------------------------------------------------------------------------


def attend_whole(
    queries: Tensor, keys: Tensor, values: Tensor, terms: ScoreTerms, points: SoftmaxPoints
) -> Tensor:
    """Pass scores and weights through their points; heads of which none is asked for are fused."""
    n_heads, hooked = points.n_heads, points.hooked_heads
    n_queries, n_keys = queries.shape[-2], keys.shape[-2]
    bias = _bias(terms, points, n_queries, n_keys, keys.device)
    mask = _mask(terms, n_queries, n_keys, keys.device)
    if points.observed_names or len(hooked) == n_heads:
        return _step_by_step(queries, keys, values, mask, bias, terms, points, None)
    some, others = list(hooked), [head for head in range(n_heads) if head not in hooked]
    context = torch.empty_like(queries)
    parts = queries[:, some], keys[:, some], values[:, some]
    context[:, some] = _step_by_step(*parts, mask, _of(bias, some), terms, points, hooked)
    parts = queries[:, others], keys[:, others], values[:, others]
    context[:, others] = fused_attention(*parts, mask, _of(bias, others), scale=terms.scale)
    return context


OURS = Kernels(attend_in_blocks, attend_whole)


def _step_by_step(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    terms: ScoreTerms,
    points: SoftmaxPoints,
    heads: tuple[int, ...] | None,
) -> Tensor:
    """Attend as the formula reads; `heads` are those that these are, None: all of them."""
    observed = points.observed_names if heads is None else []
    # 1. Match queries with keys.
    scores = points.scores(attention_scores(queries, keys, mask, bias), heads)
    is_needed = torch.is_grad_enabled() or "logsumexp" in observed
    is_needed = is_needed or bool(hooked_heads((points.scores,), points.n_heads))
    if observed and not points.is_edited:
        keep_attention(points.path, queries, keys, scores, terms)
    # 2. Weigh the keys.
    weights = points.weights(attention_weights(scores, in_place=not is_needed), heads)
    if observed:
        points.report(observe_whole(weights, scores, observed))
    # 3. Average the values.
    return (weights @ _at_least_float32(values)).to(values.dtype)


def _of(bias: Tensor | None, heads: list[int]) -> Tensor | None:
    return None if bias is None else bias[heads]


# --- scores, weights and masks --------------------------------------------------------------------


def attention_scores(
    queries: Float[Tensor, "*batch query d_head"],
    keys: Float[Tensor, "*batch key d_head"],
    mask: Bool[Tensor, "#*batch query key"] | None = None,
    bias: Float[Tensor, "#*batch query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Return Q·Kᵀ/√d_k + bias, and −∞ where the mask is False.

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
    """Return the softmax over the keys: each row is non-negative and sums to 1.

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
    """Return True where the key is not after the query.

    The queries are the last `n_queries` of the `n_keys` tokens.
    """
    allowed = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device)
    return allowed.tril(diagonal=n_keys - n_queries)


def attention_mask(
    n_queries: int,
    n_keys: int,
    *,
    is_causal: bool,
    is_token: IsToken | None = None,
    device: torch.device | None = None,
) -> Bool[Tensor, "*batch query key"] | None:
    """Return the mask of padding and, if causal, of later tokens; None if nothing is masked.

    Of shape (query, key), or (batch, 1, query, key) with padding.
    """
    mask = causal_mask(n_queries, n_keys, device) if is_causal else None
    if is_token is None:
        return mask
    padding = is_token[:, None, None, :].expand(-1, -1, n_queries, -1)
    return padding if mask is None else padding & mask


def _mask(terms: ScoreTerms, n_queries: int, n_keys: int, device: torch.device) -> Tensor | None:
    if terms.mask is not None:
        return terms.mask[..., :n_keys]
    is_causal, is_token = terms.is_causal, terms.is_token
    return attention_mask(n_queries, n_keys, is_causal=is_causal, is_token=is_token, device=device)


def _bias(
    terms: ScoreTerms, points: SoftmaxPoints, n_queries: int, n_keys: int, device: torch.device
) -> Tensor | None:
    """Return ALiBi's bias, passed through its point."""
    if terms.slopes is None or points.bias is None:
        return None
    return points.bias(alibi_bias(points.n_heads, n_queries, n_keys, device))
