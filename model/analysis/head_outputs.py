"""What each head writes to the residual stream: its context times its part of W_O.

The output of an attention is the sum over its heads, plus the projection's bias where it has one.
Elhage et al. 2021, https://transformer-circuits.pub/2021/framework/index.html.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headlight.model.analysis.projections import projection_of
from headlight.model.trace import NamedArray, Trace

NEEDS = ("*_attention.context",)
PARAMETERS = ("*_attention.output_projection.weight",)
AXES = ("head", "query", "d_model")

_END = "_attention.context"


def head_outputs(trace: Trace, parameters: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    """What every head adds to every query, context·W_O, in each attention of the trace.

    Args:
        trace: with the contexts (head, query, d_head), one for every head that asks.
        parameters: ``{attention}.output_projection.weight`` (head, d_head, d_model), all heads.

    Returns:
        By attention, ``decoder.layers.0.self_attention``: (head, query, d_model), float32; the
        heads are those of the trace.

    Raises:
        KeyError: the trace has no context, or the projection of one is missing.
        ValueError: the projection has other heads than the trace.
    """
    contexts = {site: array for site, array in trace.tensors.items() if site.endswith(_END)}
    if not contexts:
        raise KeyError(f"the trace holds no '*{_END}'; capture it")
    found: dict[str, NamedArray] = {}
    for site, array in contexts.items():
        path = site.removesuffix(".context")
        context = array.data.astype(np.float64)
        written = context @ projection_of(path, parameters, trace.heads, len(context))
        found[path] = NamedArray(AXES, written.astype(np.float32))
    return found
