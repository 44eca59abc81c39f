"""The edits of a request as interventions, with values of other traces where it asks for them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.model.served import Served
from headlight.model.trace import Trace
from headlight.model.tracing import PassSpec, count_elements, run_batch, tokenize, with_translations
from headlight.problems import Problem, too_many_elements
from headlight.schemas.edit_kinds.form import SourceRequest
from headlight.schemas.edits import EditRequest
from headlight.serialization.trace import MASKED_SITES, Answer

FindTrace = Callable[[str], Answer | None]
"""Finds a trace by its id, if it is kept."""


def with_sources(
    spec: PassSpec,
    edits: Sequence[EditRequest],
    checkpoint: Served,
    *,
    max_elements: int,
    find_trace: FindTrace,
) -> PassSpec:
    """Return the spec with the values that edits take from other traces; each text is read once.

    Args:
        spec: whose interventions are those of `edits`, in order.
        edits: of the request.
        checkpoint: the model.
        max_elements: the most numbers that may be captured of one text.
        find_trace: finds a kept trace by its id.

    Raises:
        Problem: a trace is not kept, or a text is too long.
        ImpossibleIntervention, UnknownPosition: another trace lacks what an edit takes from it.
        NoGraph, UnknownEdge: the model has no such edge.
    """
    if any(edit.needs_model for edit in edits) and any(
        each.quantizations for each in spec.interventions
    ):
        raise ImpossibleIntervention(
            "edges and values of a corpus cannot be combined with quantize"
        )
    interventions = list(spec.interventions)
    traces: dict[tuple[str | None, str | None], Trace] = {}
    for number, edit in enumerate(edits):
        if (taken := edit.taken()) is None:
            continue
        source = taken.source
        key = source.text, source.target
        if source.trace is not None:
            trace = _kept_trace(source.trace, checkpoint, find_trace)
        else:
            if key not in traces:
                traces[key] = _source_trace(source, edits, checkpoint, max_elements)
            trace = traces[key]
        interventions[number] = interventions[number].with_values_of(trace, source.positions)
    return replace(spec, interventions=tuple(each.with_model(checkpoint) for each in interventions))


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
    """Return the pass of another text without edits, with all sites that edits take from it."""
    key = source.text, source.target
    sites = dict.fromkeys(
        taken.site
        for edit in edits
        if (taken := edit.taken()) is not None and (taken.source.text, taken.source.target) == key
    )
    spec = PassSpec(tuple(sites))
    (model_input,) = with_translations(
        checkpoint, [tokenize(checkpoint, source.text, source.target)]
    )
    actual = count_elements(checkpoint.description, spec, model_input)
    if actual > max_elements:
        way_out = "take values of fewer sites, or of a shorter text"
        raise too_many_elements(limit=max_elements, actual=actual, way_out=way_out)
    return run_batch(checkpoint, spec, [model_input])[0]


def require_finite(trace: Trace) -> None:
    """Check that a pass with edits computed only finite numbers.

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
    """Return the problem of edits whose results are not finite."""
    detail = f"with these edits {site} holds numbers that are not finite; use smaller values"
    return Problem(422, "not-finite", detail)
