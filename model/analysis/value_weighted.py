"""Attention weights multiplied by the norm of the vector that the head writes for each key.

Kobayashi et al. 2020, https://arxiv.org/abs/2004.10102: a large weight on a short vector adds
little.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from headlight.model.analysis._layers import attentions_of
from headlight.model.analysis.head_outputs import projection_of
from headlight.model.trace import NamedArray, Trace

NEEDS = ("*_attention.weights", "*_attention.values")


def value_weighted(trace: Trace, parameters: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    """The norm of every weighted and projected value, α·‖v·W_O‖.

    The bias of the output projection belongs to no key and is left out.

    Args:
        trace: with the weights (head, query, key) and the values (head, key, d_head), one row per
            query head.
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
        values = _values_of(attention.path, trace)
        written = values @ projection_of(attention.path, parameters, trace.heads, len(values))
        norms = np.linalg.norm(written, axis=-1)  # head key
        weighted = attention.weights * norms[:, None, :]
        found[attention.path] = NamedArray(("head", "query", "key"), weighted.astype(np.float32))
    return found


def _values_of(path: str, trace: Trace) -> Float[np.ndarray, "head key d_head"]:
    name = f"{path}.values"
    if name not in trace.tensors:
        raise KeyError(f"the trace lacks {name}; capture it with the weights")
    return trace.tensors[name].data.astype(np.float64)
