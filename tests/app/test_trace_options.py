"""The options of a trace are those of `TraceRequest`, wherever else a signature spells them out."""

import inspect
from collections.abc import Iterable, Mapping
from typing import get_args, get_origin

from headlight.model.tracing import pass_spec, trace
from headlight.schemas.traces import TraceOptions

OF_A_PASS = {"capture", "layers", "heads", "interventions", "resolution", "queries"}


def parameters(function):
    return dict(inspect.signature(function, eval_str=True).parameters)


def is_several(kind):
    """Return True for a list, and for a union with one; not for an object."""
    if get_origin(kind) is Mapping:
        return False
    return get_origin(kind) in (list, Iterable) or any(map(is_several, get_args(kind)))


def several(kinds):
    return {name for name, kind in kinds.items() if is_several(kind)}


def hints(function):
    return {name: parameter.annotation for name, parameter in parameters(function).items()}


def test_a_pass_and_a_trace_in_this_process_have_the_same_options():
    of_pass, of_trace = parameters(pass_spec), parameters(trace)
    assert of_pass.keys() - {"description"} == OF_A_PASS
    for name in OF_A_PASS:
        assert of_pass[name] == of_trace[name], name
    members = {"edits" if name == "interventions" else name for name in OF_A_PASS}
    assert members <= TraceOptions.model_fields.keys()
    types = {name: field.annotation for name, field in TraceOptions.model_fields.items()}
    assert several(hints(pass_spec)) >= several(types) & OF_A_PASS
