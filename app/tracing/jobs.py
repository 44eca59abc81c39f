"""A request whose sites are known: what to compute, under a name for it.

The name is the trace's id. A trace is a pure function of what is hashed here, and nothing else is:
not how the sites were spelled, not how the numbers are sent, and not which other texts the pass
reads, as every text of a batch has the numbers that it has alone (to 1e-5 in float32; in bfloat16,
where that would not hold, every pass reads one text). So a request can be answered by whoever
computed the same before, on any replica.
"""

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from headlight.model import interventions
from headlight.model.checkpoint import Description
from headlight.model.interventions import ExpertAblation, HeadAblation, Intervention
from headlight.model.selection import select_sites
from headlight.schemas.traces import (
    EditRequest,
    ExpertsOffRequest,
    HeadsOffRequest,
    NoScalingRequest,
    TemperatureRequest,
    TraceRequest,
)
from headlight.tracing.analyses import made_of, sites_of


@dataclass(frozen=True, kw_only=True)
class Order:
    """A trace to compute.

    `sites` are sent; `captured` are these and what the analyses read; `made` are the arrays that
    analyses make beyond what they read: a site and its axes.
    """

    id: str
    request: TraceRequest
    model: str
    precision: str
    sites: tuple[str, ...]
    captured: tuple[str, ...]
    made: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def edits(self) -> list[Intervention]:
        """What the pass changes."""
        return [_intervention(edit) for edit in self.request.edits or ()]

    @property
    def kind(self) -> Hashable | None:
        """What orders that one pass can compute have in common; None: it is computed alone."""
        if self.precision != "float32":
            return None
        request = self.request
        heads = None if request.heads is None else tuple(request.heads)
        return "trace", self.model, self.captured, heads, tuple(request.edits or ())


def order_of(request: TraceRequest, description: Description, dtype: torch.dtype) -> Order:
    """The order that a request places with a model.

    Args:
        request: what is asked for.
        description: of the model; its weights need not be loaded.
        dtype: what the model computes in.

    Raises:
        Problem: 422 where the model cannot be analysed so.
        UnknownSite, UnknownLayer, UnknownHead: it has no such thing.
    """
    precision = str(dtype).removeprefix("torch.")
    sites = select_sites(description, request.capture, request.layers, request.heads)
    needed = sites_of(request.wanted_analyses, description, request.layers)
    captured = tuple(dict.fromkeys([*sites, *needed]))
    return Order(
        id=trace_id(description.revision, precision, request, sites, captured),
        request=request,
        model=description.id,
        precision=precision,
        sites=sites,
        captured=captured,
        made=tuple(made_of(request.wanted_analyses, needed)),
    )


def trace_id(
    revision: str,
    precision: str,
    request: TraceRequest,
    sites: Sequence[str],
    read: Sequence[str] = (),
) -> str:
    """A name for a trace: the same for whatever asks for the same numbers.

    It does not depend on how the numbers are encoded, nor on how the sites were spelled. `read` are
    the sites that its analyses read: some keep to the layers that were asked for.
    """
    asked: list[Any] = [revision, precision, request.text, sites, request.heads]
    asked += [request.wanted_analyses, sorted(read), request.target, request.wanted_edits]
    # Not orjson, which refuses half a character; the tokenizer says better what is wrong with it.
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def _intervention(edit: EditRequest) -> Intervention:
    """The edit of a request as an intervention in the model."""
    match edit:
        case HeadsOffRequest():
            return HeadAblation(heads=tuple(edit.heads), layer=edit.layer, where=edit.where)
        case ExpertsOffRequest():
            return ExpertAblation(experts=tuple(edit.experts), layer=edit.layer, where=edit.where)
        case NoScalingRequest():
            return interventions.NoScaling(layer=edit.layer, where=edit.where)
        case TemperatureRequest():
            return interventions.Temperature(value=edit.value, layer=edit.layer, where=edit.where)
