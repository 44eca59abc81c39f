"""Activation patching: the share of the difference between two texts that each activation carries.

An activation of one text is put into the pass of another. If the prediction then is that of the
first text, the activation carries all of the difference. Vig et al. 2020,
https://arxiv.org/abs/2004.12265; Heimersheim and Nanda 2024, https://arxiv.org/abs/2404.15255.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from headlight.model.analysis.edited_passes import EditedPasses
from headlight.model.analysis.layers import ATTENTIONS, layers_of, tokens_of
from headlight.model.analysis.logit_attribution import FEED_FORWARDS, LogitDifference
from headlight.model.analysis.sentence_vectors import VectorChange
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.trace import NamedArray, Trace

Part: TypeAlias = Literal["residual", "attention", "feed_forward", "heads"]

LEAST_DIFFERENCE = 1e-3


@dataclass(frozen=True)
class _Cell:
    """A cell of a map, and the edit whose effect it shows."""

    map: str
    row: int
    column: int
    edit: SiteEdit


def patching(
    passes: EditedPasses,
    source: Trace,
    difference: LogitDifference | VectorChange,
    parts: Sequence[Part] = ("residual", "heads"),
) -> dict[str, NamedArray]:
    """Put activations of another text into the pass of a text, one at a time.

    Args:
        passes: over the text of a trace with the logits, the streams before layers, and the
            sites of the parts.
        source: the trace of the other text, of as many tokens, with the same sites.
        difference: the prediction to measure, or the change of the texts' vector.
        parts: ``residual``: the stream before a layer at a position; ``attention`` and
            ``feed_forward``: what a layer's part writes there; ``heads``: a head's context, at all
            positions.

    Returns:
        float32. ``differences`` (text): the logit differences of the text and of the other one.
        By stack, ``decoder.residual``, ``.self_attention``, ``.cross_attention`` and
        ``.feed_forward`` (layer, position), and ``decoder.self_attention.heads`` (layer, head): the
        share (patched − own) / (other − own), 0 if the activation changes nothing and 1 if it makes
        the prediction that of the other text.

    Raises:
        ValueError: the texts have different numbers of tokens, or the same logit difference, or the
            model has none of the parts.
        TooManyPasses, Cancelled: as `EditedPasses.predict`.
    """
    trace = passes.trace
    for what, tokens, source_tokens in (
        ("", trace.tokens, source.tokens),
        ("target ", trace.target_tokens or (), source.target_tokens or ()),
    ):
        if len(tokens) != len(source_tokens):
            raise ValueError(
                f"the {what}texts must have the same number of tokens: "
                f"the first has {len(tokens)}, the second {len(source_tokens)}"
            )
    differences = [difference.in_trace(side) for side in (trace, source)]
    whole = differences[1] - differences[0]
    if abs(whole) < LEAST_DIFFERENCE:
        raise ValueError(
            f"both texts give the same {difference.name}, {differences[0]:.3f}, so there is "
            "nothing to share out; compare other tokens, or change the other text"
        )
    maps, cells = _cells(trace, source, difference, parts)
    if not maps:
        raise ValueError(f"the model has none of the parts {', '.join(parts)}")
    if cells:
        rows = [[cell.edit] for cell in cells]
        patched_differences = (
            difference.in_passes(passes, rows)
            if isinstance(difference, VectorChange)
            else passes.predict(rows, difference).differences
        )
        for cell, patched in zip(cells, patched_differences, strict=True):
            maps[cell.map][cell.row, cell.column] = (patched - differences[0]) / whole
    arrays = {"differences": NamedArray(("text",), np.array(differences, np.float32))}
    for name, data in maps.items():
        axes = ("layer", "head" if name.endswith(".heads") else "position")
        arrays[name] = NamedArray(axes, data.astype(np.float32))
    return arrays


def _cells(
    trace: Trace, source: Trace, difference: LogitDifference | VectorChange, parts: Sequence[Part]
) -> tuple[dict[str, np.ndarray], list[_Cell]]:
    """Return the maps, filled with 0, and the cells in them whose activations differ."""
    maps: dict[str, np.ndarray] = {}
    cells: list[_Cell] = []
    stacks = layers_of(trace, "residual.before")
    *_, predicting = stacks
    for stack, layers in stacks.items():
        shape = (max(layers) + 1, len(tokens_of(trace, stack)))
        # A causal prediction reads nothing after its position.
        is_causal = stack == "decoder"
        end = difference.position + 1 if is_causal and stack == predicting else shape[1]
        for part, name, ending in _sites(stack, parts):
            for layer in layers:
                site = f"{stack}.layers.{layer}.{ending}"
                if site not in trace or site not in source:
                    continue
                array, source_array = trace[site], source[site]
                if part == "heads":
                    n_heads = len(source_array)
                    maps.setdefault(name, np.zeros((shape[0], n_heads)))
                    cells += [
                        _Cell(name, layer, head, SiteEdit.patch(source, site, heads=[head]))
                        for head in range(n_heads)
                        if len(array) != n_heads
                        or not np.array_equal(array[head], source_array[head])
                    ]
                    continue
                maps.setdefault(name, np.zeros(shape))
                cells += [
                    _Cell(name, layer, at, SiteEdit.patch(source, site, positions=[at]))
                    for at in range(end)
                    if not np.array_equal(array[at], source_array[at])
                ]
    return maps, cells


def _sites(stack: str, parts: Sequence[Part]) -> list[tuple[Part, str, str]]:
    """Return each part with the name of its map and the ending of its sites."""
    sites: list[tuple[Part, str, str]] = []
    for part in dict.fromkeys(parts):
        if part == "residual":
            sites.append((part, f"{stack}.residual", "residual.before"))
        elif part == "attention":
            sites += [(part, f"{stack}.{kind}", f"{kind}.output") for kind in ATTENTIONS]
        elif part == "feed_forward":
            sites += [(part, f"{stack}.feed_forward", f"{kind}.output") for kind in FEED_FORWARDS]
        else:
            sites += [(part, f"{stack}.{kind}.heads", f"{kind}.context") for kind in ATTENTIONS]
    return sites
