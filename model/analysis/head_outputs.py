"""The vector that each head adds to the residual stream, context times W_O, and its norm.

`value_weighted` has the norm of its part for each key.

A model with a norm behind the projection, as OLMo 2 and Gemma 2, adds the norm of the sum over the
heads. Once its scale is held at its value in this pass, it multiplies what each head writes by a
gain, which is the site ``{attention}.gain``.

The output of an attention is the sum over its heads, plus the bias of the output projection if
there is one. Elhage et al. 2021, https://transformer-circuits.pub/2021/framework/index.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from headlight.model.analysis.layers import attentions_of
from headlight.model.description import Description
from headlight.model.served import Served
from headlight.model.trace import NamedArray, Trace

_CONTEXT = "_attention.context"


def head_outputs(trace: Trace, parameters: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    """Return the product context·W_O of every captured head of every attention.

    Args:
        trace: with the contexts (head, query, d_head), one per query head, and the gains.
        parameters: ``{attention}.output_projection.weight`` (head, d_head, d_model), all heads.

    Returns:
        By attention, ``decoder.layers.0.self_attention``: (head, query, d_model), float32; the
        heads are those of the trace.

    Raises:
        KeyError: the trace has no context, or the projection of one is missing.
        ValueError: the projection has other heads than the trace.
    """
    return {
        path: NamedArray(
            ("head", "query", "d_model"),
            (contexts.astype(np.float64) @ projection * gain_of(path, trace)).astype(np.float32),
        )
        for path, contexts, projection in contexts_and_projections(trace, parameters)
    }


def head_norms(trace: Trace, parameters: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    """Return ‖context·W_O‖ of every captured head of every attention, token by token.

    The share of a head is its norm over the sum of the norms of all heads of its attention:
    1/n_heads if all write equally much. Kobayashi et al. 2020, https://arxiv.org/abs/2004.10102,
    on norms in place of weights.

    Args:
        trace: with the contexts (head, query, d_head), one per query head, and the gains.
        parameters: ``{attention}.output_projection.weight`` (head, d_head, d_model), all heads.

    Returns:
        By attention, ``decoder.layers.0.self_attention``: (head, query), float32, at least 0; the
        heads are those of the trace.

    Raises:
        KeyError: the trace has no context, or the projection of one is missing.
        ValueError: the projection has other heads than the trace.
    """
    arrays: dict[str, NamedArray] = {}
    for path, contexts, projection in contexts_and_projections(trace, parameters):
        gain = gain_of(path, trace)
        if len(gain) == 1:  # W_O·W_Oᵀ of each head: d_model / d_head times less work
            scaled = projection * gain
            read = contexts.astype(np.float64) @ (scaled @ scaled.swapaxes(1, 2))
            norms = np.sqrt((read * contexts).sum(-1).clip(min=0))
        else:  # one head at a time: (head, query, d_model) of a long text is far larger
            pairs = zip(contexts.astype(np.float64), projection, strict=True)
            norms = np.stack([np.linalg.norm(each @ rows * gain, axis=-1) for each, rows in pairs])
        arrays[path] = NamedArray(("head", "query"), norms.astype(np.float32))
    return arrays


def value_weighted(trace: Trace, parameters: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    """Return the norm of every weighted and projected value, α·‖v·W_O‖.

    A large weight on a short vector adds little. Kobayashi et al. 2020, section 3.

    The bias of the output projection belongs to no key and is left out.

    Args:
        trace: with the weights (head, query, key) and the values (head, key, d_head), one row per
            query head, and the gains.
        parameters: ``{attention}.output_projection.weight`` (head, d_head, d_model), all heads.

    Returns:
        By attention, ``decoder.layers.0.self_attention``: (head, query, key), float32, not
        negative. Rows do not sum to 1; the heads are those of the trace.

    Raises:
        KeyError: the trace has no weights, or lacks the values or the projection of one.
        ValueError: the projection has other heads than the trace.
    """
    arrays: dict[str, NamedArray] = {}
    for attention in attentions_of(trace):
        values = _values_of(attention.path, trace)
        written = values @ projection_of(attention.path, parameters, trace.heads, len(values))
        gain = gain_of(attention.path, trace)  # one row, or one for each query
        gain = np.broadcast_to(gain, (len(gain), written.shape[-1]))
        norms = np.sqrt(np.einsum("hkd,qd->hqk", written**2, gain**2))
        weighted = attention.weights * norms
        arrays[attention.path] = NamedArray(("head", "query", "key"), weighted.astype(np.float32))
    return arrays


def gain_of(path: str, trace: Trace) -> Float[np.ndarray, "query d_model"]:
    """Return the factors of what the heads of an attention write; ones if there are none."""
    if f"{path}.gain" not in trace.tensors:
        return np.ones((1, 1))
    return trace.tensors[f"{path}.gain"].data.astype(np.float64)


def _values_of(path: str, trace: Trace) -> Float[np.ndarray, "head key d_head"]:
    name = f"{path}.values"
    if name not in trace.tensors:
        raise KeyError(f"the trace lacks {name}; capture it with the weights")
    return trace.tensors[name].data.astype(np.float64)


def contexts_and_projections(
    trace: Trace, parameters: Mapping[str, NamedArray]
) -> Iterator[
    tuple[str, Float[np.ndarray, "head query d_head"], Float[np.ndarray, "head d_head d_model"]]
]:
    """Yield the path of each attention with its contexts, and W_O of the same heads in float64.

    Raises:
        KeyError: the trace has no context, or the projection of one is missing.
        ValueError: the projection has other heads than the trace.
    """
    contexts = {site: array for site, array in trace.tensors.items() if site.endswith(_CONTEXT)}
    if not contexts:
        raise KeyError(f"the trace holds no '*{_CONTEXT}'; capture it")
    for site, array in contexts.items():
        path = site.removesuffix(".context")
        yield path, array.data, projection_of(path, parameters, trace.heads, len(array.data))


def projection_of(
    path: str, parameters: Mapping[str, NamedArray], heads: Sequence[int] | None, n_heads: int
) -> Float[np.ndarray, "head d_head d_model"]:
    """Return W_O of an attention, float64, restricted to the heads of a trace.

    Args:
        path: of the attention, ``decoder.layers.0.self_attention``.
        parameters: with ``{path}.output_projection.weight`` (head, d_head, d_model), all heads.
        heads: those of the trace; None: all of them.
        n_heads: how many heads the trace's arrays have.

    Raises:
        KeyError: the projection is missing.
        ValueError: it has other heads than the trace.
    """
    name = f"{path}.output_projection.weight"
    if name not in parameters:
        raise KeyError(f"the parameters lack {name}")
    projection = parameters[name].data.astype(np.float64)
    chosen = range(len(projection)) if heads is None else heads
    if len(chosen) != n_heads or max(chosen) >= len(projection):
        raise ValueError(
            f"the output projection has {len(projection)} heads, but the trace holds "
            f"{n_heads} (heads: {'all' if heads is None else list(heads)})"
        )
    return projection[list(chosen)]


def output_weights(trace: Trace, model: Served) -> dict[str, NamedArray]:
    """Return W_O of every attention whose context or weights a trace holds, by its name."""
    sites = (site.rpartition(".") for site in trace.tensors)
    paths = dict.fromkeys(path for path, _, part in sites if part in ("context", "weights"))
    return {
        f"{path}.output_projection.weight": model.output_weights(path)
        for path in paths
        if path.endswith("attention")
    }


def unknown_outputs(description: Description) -> str | None:
    """Return the reason why the heads' outputs are unknown; None if they are known."""
    if "head_outputs" in description.features:
        return None
    reasons = [why for name, why in description.omitted.items() if name.endswith(".head_outputs")]
    return (reasons or ["no matrix makes what an attention writes of what its heads read"])[0]
