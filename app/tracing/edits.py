"""The edits of a request as interventions, with values of other traces where it asks for them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headlight.errors import Problem, too_many_elements
from headlight.model.interventions import (
    ExpertAblation,
    HeadAblation,
    ImpossibleIntervention,
    Intervention,
    NoScaling,
    Temperature,
)
from headlight.model.quantization import Quantization
from headlight.model.served import Served
from headlight.model.site_edit import SiteEdit
from headlight.model.trace import Trace
from headlight.model.tracing import (
    PassSpec,
    count_elements,
    run_batch,
    tokenize,
    with_translations,
)
from headlight.schemas.edits import (
    EditRequest,
    ExpertsOffRequest,
    HeadsOffRequest,
    MeanRequest,
    NoScalingRequest,
    PatchRequest,
    QuantizeRequest,
    SetRequest,
    SourceRequest,
    TemperatureRequest,
)
from headlight.serialization.trace import MASKED_SITES, Answer

FindTrace = Callable[[str], Answer | None]
"""Finds a trace by its id, if it is kept."""


def intervention_of(edit: EditRequest) -> Intervention:
    """The intervention that an edit of the API asks for; 0 stands for values of another trace."""
    match edit:
        case HeadsOffRequest():
            return HeadAblation(heads=tuple(edit.heads), layer=edit.layer, where=edit.where)
        case ExpertsOffRequest():
            return ExpertAblation(experts=tuple(edit.experts), layer=edit.layer, where=edit.where)
        case TemperatureRequest():
            return Temperature(value=edit.value, layer=edit.layer, where=edit.where)
        case NoScalingRequest():
            return NoScaling(layer=edit.layer, where=edit.where)
        case QuantizeRequest():
            return Quantization(bits=edit.bits, parts=tuple(edit.parts or ()), per=edit.per)
    place: dict[str, Any] = {
        "site": edit.site,
        "heads": None if edit.heads is None else tuple(edit.heads),
        "positions": None if edit.positions is None else tuple(edit.positions),
    }
    if isinstance(edit, MeanRequest):
        return SiteEdit(kind="mean", over=edit.over, **place)
    if isinstance(edit, PatchRequest):
        return SiteEdit(kind="set", value=0, **place)
    value = 0 if edit.value is None else np.asarray(edit.value, np.float32)
    return SiteEdit(kind=edit.kind, value=value, **place)


def source_of(edit: EditRequest) -> SourceRequest | None:
    """The trace that an edit takes its values from; None: it has its own."""
    return edit.source if isinstance(edit, SetRequest | PatchRequest) else None


def with_sources(
    spec: PassSpec,
    edits: Sequence[EditRequest],
    checkpoint: Served,
    *,
    max_elements: int,
    find_trace: FindTrace,
) -> PassSpec:
    """The spec with the values that edits take from other traces; each text is read once.

    Args:
        spec: whose interventions are those of `edits`, in order.
        edits: of the request.
        checkpoint: the model.
        max_elements: the most numbers that may be captured of one text.
        find_trace: finds a kept trace by its id.

    Raises:
        Problem: a trace is not kept, or a text is too long.
        ImpossibleIntervention, UnknownPosition: another trace lacks what an edit takes from it.
    """
    found = list(spec.interventions)
    read: dict[tuple[str | None, str | None], Trace] = {}
    for number, edit in enumerate(edits):
        source, bound = source_of(edit), found[number]
        if source is None:
            continue
        assert isinstance(edit, SetRequest | PatchRequest)
        assert isinstance(bound, SiteEdit)
        key = source.text, source.target
        if source.trace is not None:
            trace = _kept_trace(source.trace, checkpoint, find_trace)
        else:
            if key not in read:
                read[key] = _source_trace(source, edits, checkpoint, max_elements)
            trace = read[key]
        patch = SiteEdit.patch(
            trace,
            edit.site,
            heads=bound.heads,
            positions=bound.positions,
            source_positions=source.positions,
        )
        found[number] = replace(bound, value=patch.value)
    return replace(spec, interventions=tuple(found))


def _kept_trace(trace_id: str, checkpoint: Served, find_trace: FindTrace) -> Trace:
    answer = find_trace(trace_id)
    if answer is None:
        detail = f"the trace '{trace_id}', to take values from, is not kept here; send its text"
        raise Problem(422, "unknown-trace", detail)
    trace = answer.trace
    if (trace.model, trace.revision) != (checkpoint.id, checkpoint.description.revision):
        raise ImpossibleIntervention(
            f"the trace '{trace_id}' is of the model '{trace.model}', and this pass of "
            f"'{checkpoint.id}'; take values from a trace of the same model"
        )
    return trace


def _source_trace(
    source: SourceRequest, edits: Sequence[EditRequest], checkpoint: Served, max_elements: int
) -> Trace:
    """The pass of another text without edits, with all sites that edits take from it."""
    key = source.text, source.target
    sites = dict.fromkeys(
        edit.site
        for edit in edits
        if isinstance(edit, SetRequest | PatchRequest)
        and (one := edit.source) is not None
        and (one.text, one.target) == key
    )
    spec = PassSpec(tuple(sites))
    (read,) = with_translations(checkpoint, [tokenize(checkpoint, source.text, source.target)])
    actual = count_elements(checkpoint.description, spec, read)
    if actual > max_elements:
        way_out = "take values of fewer sites, or of a shorter text"
        raise too_many_elements(limit=max_elements, actual=actual, way_out=way_out)
    return run_batch(checkpoint, spec, [read])[0]


def require_finite(trace: Trace) -> None:
    """Check what a pass with edits computed.

    Raises:
        Problem: 422, a number is not finite, as the edits exceed what the model can compute.
    """
    for site, array in trace.tensors.items():
        data = array.data.astype(np.float32, copy=False)
        is_right = np.isfinite(data)
        if site.endswith(MASKED_SITES):
            is_right |= np.isneginf(data)
        if not is_right.all():
            raise not_finite(site)


def not_finite(site: str) -> Problem:
    """The problem of edits that make numbers which are not finite."""
    detail = f"with these edits {site} holds numbers that are not finite; use smaller values"
    return Problem(422, "not-finite", detail)
