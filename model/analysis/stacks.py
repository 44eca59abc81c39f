"""The stacks of layers that a trace shows, found by the names of its arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from headlight.model.trace import Token, Trace

STACKS = ("encoder", "decoder")
Layers = dict[int, NDArray[np.generic]]

_SITE = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)")


def layers_of(trace: Trace, part: str) -> dict[str, Layers]:
    """What a trace holds of one part of its layers, by stack and layer number, both in order.

    Args:
        trace: any trace.
        part: the end of the site's name, ``self_attention.weights`` or ``residual.after``.

    Raises:
        KeyError: the trace holds that part of no layer.
    """
    found: dict[str, Layers] = {stack: {} for stack in STACKS}
    for site, array in trace.tensors.items():
        match = _SITE.fullmatch(site)
        if match and match[3] == part:
            found[match[1]][int(match[2])] = array.data
    stacks = {stack: dict(sorted(layers.items())) for stack, layers in found.items() if layers}
    if not stacks:
        raise KeyError(f"the trace holds no '*.layers.*.{part}'; capture it")
    return stacks


def require_all_layers(layers: Mapping[int, object], stack: str, part: str) -> None:
    """Raise ValueError unless the layers are 0, 1, 2, … without a gap."""
    missing = sorted(set(range(max(layers))) - set(layers))
    if missing:
        raise ValueError(
            f"the trace lacks {stack}.layers.{missing[0]}.{part}, but holds that of layer "
            f"{max(layers)}; capture '{stack}.layers.*.{part}'"
        )


def tokens_of(trace: Trace, stack: str) -> tuple[Token, ...]:
    """The tokens that a stack reads: the target's for the decoder of an encoder–decoder."""
    is_target = stack == "decoder" and trace.target_tokens is not None
    return (trace.target_tokens or ()) if is_target else trace.tokens
