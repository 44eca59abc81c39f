"""What each key really adds to a query: its weight times the length of what the head writes.

Kobayashi et al. 2020, https://arxiv.org/abs/2004.10102: a large weight on a short vector is little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from model.analysis.attentions import attentions_of
from model.trace import NamedArray, Trace

NEEDS = ("*_attention.weights", "*_attention.values")
PARAMETERS = ("*_attention.output_projection.weight",)


def value_weighted(trace: Trace, parameters: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    """The norm of every weighted and projected value, α·‖v·W_O‖.

    The bias of the output projection belongs to no key and is left out.

    Args:
        trace: with the weights (head, query, key) and the values (head, key, d_head), one row for
            every head that asks.
        parameters: ``{attention}.output_projection.weight`` (head, d_head, d_model), all heads.

    Returns:
        By attention, ``decoder.layers.0.self_attention``: (head, query, key), float32, not
        negative. Rows do not sum to 1; the heads are those of the trace.

    Raises:
        KeyError: the trace has no weights, or lacks the values or the projection of one.
        ValueError: the projection has other heads than the trace.
    """
    found: dict[str, NamedArray] = {}
    for attention in attentions_of(trace):
        values = _look_up(trace.tensors, f"{attention.path}.values").data.astype(np.float64)
        projection = _look_up(parameters, f"{attention.path}.output_projection.weight").data
        written = values @ _chosen(projection.astype(np.float64), trace.heads, len(values))
        norms = np.linalg.norm(written, axis=-1)  # head key
        weighted = attention.weights * norms[:, None, :]
        found[attention.path] = NamedArray(("head", "query", "key"), weighted.astype(np.float32))
    return found


def _look_up(arrays: Mapping[str, NamedArray], name: str) -> NamedArray:
    if name not in arrays:
        raise KeyError(f"{name} is missing, and the weights alone do not say how long values are")
    return arrays[name]


def _chosen(
    projection: Float[np.ndarray, "all d_head d_model"], heads: Sequence[int] | None, n_heads: int
) -> Float[np.ndarray, "head d_head d_model"]:
    chosen = range(len(projection)) if heads is None else heads
    if len(chosen) != n_heads or max(chosen) >= len(projection):
        raise ValueError(
            f"the output projection has {len(projection)} heads, but the trace holds the values of "
            f"{n_heads} (heads: {'all' if heads is None else list(heads)})"
        )
    return projection[list(chosen)]
