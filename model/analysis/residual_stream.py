"""Norms of the residual stream, of the updates written to it, and statistics of each norm's input.

Every part of a layer reads the stream and adds an update to it (Elhage et al. 2021,
https://transformer-circuits.pub/2021/framework/index.html). In a pre-norm model the stream itself
is never normalised: its norm grows with depth, and an update of the same norm turns it less and
less (Heimersheim and Turner 2023, https://www.lesswrong.com/posts/8mizBCm3dyc432nK8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headlight.model.analysis.layers import STACKS, float_array, layers_of, require_all_layers
from headlight.model.config import require_known
from headlight.model.trace import NamedArray, Trace

PLACES = ("before", "between", "middle", "after")
# The part that writes after each place but the last: its possible sites, and its norm.
PARTS = {
    "self_attention": (("self_attention",), "attention_norm"),
    "cross_attention": (("cross_attention",), "cross_attention_norm"),
    "feed_forward": (("feed_forward", "experts"), "feed_forward_norm"),
}

Vectors = Float[np.ndarray, "query d_model"]
Named = dict[str, Float[np.ndarray, " query"]]


@dataclass(frozen=True)
class _Write:
    """One update: the part that writes it, its norm, the stream before it, and the update."""

    part: str
    norm: str
    stream: Vectors
    written: Vectors


def residual_stream(
    trace: Trace, *, norm: str = "layer_norm", norm_place: str = "pre"
) -> dict[str, NamedArray]:
    """Norms of the stream and of its updates, layer by layer.

    Args:
        trace: with every ``{stack}.layers.N.residual.*`` and every output of a part, (query,
            d_model), of the layers from 0 on.
        norm: ``layer_norm`` or ``rms_norm``.
        norm_place: ``pre`` or ``both`` if a norm's input is the stream that a part reads, ``post``
            if it is the sum of the stream and the update, ``output`` if it is neither.

    Returns:
        For ``encoder`` and ``decoder``, if the trace holds them; (layer, query), float32:

        - ``decoder.residual_norm.before``, ``.between``, ``.middle``, ``.after``: ‖x‖ at the places
          of a layer; ``between`` only with cross-attention.
        - ``decoder.written_norm.self_attention``, ``.cross_attention``, ``.feed_forward``: ‖w‖ of
          each part's update; that of experts is listed as feed_forward.
        - ``decoder.cosine.self_attention``, …: x·w / ‖x‖‖w‖ of an update w and the stream x that it
          is added to, in [-1, 1]; 0 if either is the zero vector.
        - ``decoder.mean.attention_norm``, ``.cross_attention_norm``, ``.feed_forward_norm`` and
          ``decoder.deviation.attention_norm``, …: μ and σ over the d_model features of each
          LayerNorm's input, σ = √(Σ(x−μ)²/d_model) without the ε. For RMSNorm, which does not
          centre, ``decoder.root_mean_square.attention_norm``, …: √(Σx²/d_model). Not with
          ``output``.
        - ``decoder.mean.norm`` and so on, (query): of the final norm, which all but ``post`` have.

    Raises:
        KeyError: the trace holds no residual stream, or lacks one of its places or updates.
        ValueError: a layer below another is missing, or a name is unknown.
    """
    parts: dict[str, Named] = {}
    for stack, layers in layers_of(trace, "residual.before").items():
        require_all_layers(layers, stack, "residual.before")
        paths = [f"{stack}.layers.{layer}" for layer in layers]
        parts |= {path: layer_norms(trace, path, norm, norm_place) for path in paths}
    return joined(parts)


def joined(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, NamedArray]:
    """Return the result of `residual_stream` from `layer_norms` of each layer by its path."""
    arrays: dict[str, NamedArray] = {}
    for stack in STACKS:
        by_layer = [part for path, part in parts.items() if path.startswith(f"{stack}.")]
        for name in by_layer[0] if by_layer else ():
            if name.endswith(".norm"):  # of the final norm, which reads the last stream
                arrays[f"{stack}.{name}"] = float_array(by_layer[-1][name], "query")
            else:
                rows = np.stack([each[name] for each in by_layer])
                arrays[f"{stack}.{name}"] = float_array(rows, "layer", "query")
    return arrays


def layer_norms(trace: Trace, path: str, norm: str, norm_place: str) -> Named:
    """Return what `residual_stream` tells of the layer at a path, (query) each."""
    require_known("norm", norm, tuple(_STATISTICS))
    require_known("norm_place", norm_place, ("pre", "both", "post", "output"))
    arrays: Named = {}
    for place in PLACES:
        if place != "between" or f"{path}.residual.{place}" in trace.tensors:
            stream = _vectors(trace, f"{path}.residual.{place}")
            arrays[f"residual_norm.{place}"] = np.linalg.norm(stream, axis=-1)
    for write in _writes(trace, path):
        arrays[f"written_norm.{write.part}"] = np.linalg.norm(write.written, axis=-1)
        arrays[f"cosine.{write.part}"] = cosine(write.stream, write.written)
        if norm_place == "output":
            continue
        entering = write.stream + write.written if norm_place == "post" else write.stream
        for statistic, row in _STATISTICS[norm](entering).items():
            arrays[f"{statistic}.{write.norm}"] = row
    if norm_place != "post":
        last = _vectors(trace, f"{path}.residual.after")
        arrays |= {f"{name}.norm": row for name, row in _STATISTICS[norm](last).items()}
    return arrays


def _writes(trace: Trace, path: str) -> Iterator[_Write]:
    """Yield the updates of a layer's parts, in order; cross-attention if it has any."""
    has_between = f"{path}.residual.between" in trace.tensors
    places = PLACES[:3] if has_between else ("before", "middle")
    parts = [part for part in PARTS if has_between or part != "cross_attention"]
    for place, part in zip(places, parts, strict=True):
        sites, norm = PARTS[part]
        held = [
            f"{path}.{site}.output" for site in sites if f"{path}.{site}.output" in trace.tensors
        ]
        written = _vectors(trace, (held or [f"{path}.{sites[0]}.output"])[0])
        yield _Write(part, norm, _vectors(trace, f"{path}.residual.{place}"), written)


def cosine(
    first: Float[np.ndarray, "*rows d_model"], second: Float[np.ndarray, "*rows d_model"]
) -> Float[np.ndarray, "*rows"]:
    """Return the cosine of the angle between vectors; 0 if either is the zero vector."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    products = (first * second).sum(axis=-1)
    cosines: Float[np.ndarray, "*rows"] = products / np.where(lengths > 0, lengths, 1)
    return cosines.clip(-1, 1)


def _layer_norm_statistics(x: Vectors) -> Named:
    """Ba et al. 2016, https://arxiv.org/abs/1607.06450, equation 3."""
    return {"mean": x.mean(axis=-1), "deviation": x.std(axis=-1)}


def _rms_norm_statistics(x: Vectors) -> Named:
    """Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467, equation 4."""
    return {"root_mean_square": np.sqrt(np.square(x).mean(axis=-1))}


_STATISTICS = {"layer_norm": _layer_norm_statistics, "rms_norm": _rms_norm_statistics}


def _vectors(trace: Trace, site: str) -> Vectors:
    tensors: Mapping[str, NamedArray] = trace.tensors
    if site not in tensors:
        raise KeyError(f"{site} is missing; capture '*.residual.*' and '*.output'")
    return tensors[site].data.astype(np.float64)
