"""The norm of the vector that each head adds to the residual stream, token by token.

The vectors are those of `head_outputs`; only their lengths are kept. The share of a head is its
norm over the sum of the norms of all heads of its attention: 1/n_heads if all write equally much.
Kobayashi et al. 2020, https://arxiv.org/abs/2004.10102, on norms in place of weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headlight.model.analysis.head_outputs import contexts_and_projections
from headlight.model.trace import NamedArray, Trace

NEEDS = ("*_attention.context",)


def head_norms(trace: Trace, parameters: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    """‖context·W_O‖ of every captured head of every attention.

    Args:
        trace: with the contexts (head, query, d_head), one per query head.
        parameters: ``{attention}.output_projection.weight`` (head, d_head, d_model), all heads.

    Returns:
        By attention, ``decoder.layers.0.self_attention``: (head, query), float32, at least 0; the
        heads are those of the trace.

    Raises:
        KeyError: the trace has no context, or the projection of one is missing.
        ValueError: the projection has other heads than the trace.
    """
    found: dict[str, NamedArray] = {}
    for path, contexts, projection in contexts_and_projections(trace, parameters):
        # One head at a time: (head, query, d_model) of a long text is far larger than the norms.
        norms = [
            np.linalg.norm(context.astype(np.float64) @ weights, axis=-1)
            for context, weights in zip(contexts, projection, strict=True)
        ]
        found[path] = NamedArray(("head", "query"), np.stack(norms).astype(np.float32))
    return found
