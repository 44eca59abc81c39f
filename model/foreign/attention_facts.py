"""The terms of an attention's softmax: its scale, cap, window, bias and sink, found by numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headlight.model.attention.scores import scaled_product
from headlight.model.attention.terms import AttentionFacts, Terms
from headlight.model.foreign.probe import AttentionCall

TOLERANCE, IN_LOWER_PRECISION = 1e-5, 2e-2


def tolerance_of(tensor: Tensor) -> float:
    """Return the difference that rounding may make, as a share of the greatest number."""
    return TOLERANCE if tensor.dtype in (torch.float32, torch.float64) else IN_LOWER_PRECISION


def same(first: Tensor, second: Tensor, factor: float = 1) -> bool:
    """Return True if two tensors have one shape and equal numbers, up to rounding."""
    if first.shape != second.shape:
        return False
    scale = float(second.abs().max()) if second.numel() else 0.0
    limit = factor * tolerance_of(second) * scale
    return float((first - second).abs().max()) <= limit if second.numel() else True


def is_causal(weights: Tensor) -> bool:
    """Return True if no query sees a later key."""
    n_queries, n_keys = weights.shape[-2:]
    return n_queries == n_keys and not bool(weights.triu(diagonal=1).any())


class Span(NamedTuple):
    """How far a query sees: a window and the length of a chunk, as in `AttentionFacts`."""

    window: int | None = None
    chunk: int | None = None


def span_of(config: Any, layer: int) -> Span:
    """Return the span that a config gives to a layer, if the attention does not receive it."""
    kinds = getattr(config, "layer_types", None) or getattr(config, "attention_layers", None) or ()
    kind = kinds[layer] if layer < len(kinds) else None
    chunk = getattr(config, "attention_chunk_size", None) if kind == "chunked_attention" else None
    window = getattr(config, "window_size", None) if kind == "local" else None
    return Span(window, chunk)


def facts_of(
    path: str, kind: str, attention: AttentionCall, n_groups: int, span: Span
) -> AttentionFacts:
    """Return the terms of the softmax of a recorded attention.

    Args:
        path: of the attention.
        kind: ``self_attention`` or ``cross_attention``.
        attention: as it was recorded.
        n_groups: heads of keys and values.
        span: of its layer by the config.
    """
    options, queries, keys = attention.options, attention.queries, attention.keys
    scores = attention.scores
    causal = kind == "self_attention" and is_causal(attention.weights)
    softcap = next(
        (
            float(value)
            for name, value in options.items()
            if "softcap" in name and isinstance(value, int | float)
        ),
        None,
    )
    window = options.get("sliding_window", span.window)
    scale = options.get("scaling")
    if scale is None and queries is not None:
        scale = queries.shape[-1] ** -0.5 if attention.has_interface else None
    is_exact = has_bias = False
    if queries is not None and keys is not None and queries.shape[-1] == keys.shape[-1]:
        seen = scores > torch.finfo(scores.dtype).min / 2
        if scale is None:
            scale = _fit(scaled_product(queries, keys, Terms(scale=1.0)), scores, seen)
        if scale is not None:
            made = scaled_product(queries, keys, Terms(scale=scale, softcap=softcap))
            rest = torch.where(seen, scores.float() - made, 0.0)
            limit = tolerance_of(scores) * max(1.0, float(made.abs().max()))
            if attention.has_sink or float(rest.abs().max()) <= limit:
                is_exact = float(rest.abs().max()) <= limit
            else:  # a bias is the same for every text
                has_bias = float((rest[0] - rest[-1]).abs().max()) <= limit
                is_exact = has_bias
    return AttentionFacts(
        path=path,
        is_causal=causal,
        n_heads=scores.shape[1],
        n_groups=n_groups,
        scale=None if scale is None else float(scale),
        softcap=softcap,
        window=window if isinstance(window, int) and not isinstance(window, bool) else None,
        chunk=span.chunk if causal else None,
        has_bias=has_bias,
        has_sink=attention.has_sink,
        sinks=_sinks_of(attention.sinks),
        is_exact=is_exact,
    )


def _sinks_of(logits: Tensor | None) -> tuple[float, ...] | None:
    """Return the sink of each head, if every row has one (batch, head, query, 1)."""
    if logits is None or not bool(torch.isfinite(logits).all()):
        return None
    first = logits[:1, :, :1]
    if not torch.equal(logits, first.expand_as(logits)):
        return None
    return tuple(float(sink) for sink in first.flatten())


def _fit(product: Tensor, scores: Tensor, seen: Tensor) -> float | None:
    """Return the factor between Q·Kᵀ and the scores, by the differences of two texts."""
    first, second = product[0][seen[0]], product[-1][seen[-1]]
    first_scores, second_scores = scores[0][seen[0]], scores[-1][seen[-1]]
    if first.shape != second.shape:
        return None
    left, right = (first - second).double(), (first_scores - second_scores).double()
    square = float(left @ left)
    return float(left @ right) / square if square > 0 else None
