"""The options of a trace are those of `TraceRequest`, wherever else a signature spells them out."""

import inspect
from collections.abc import Iterable, Mapping
from typing import get_args, get_origin

import pytest

from headlight.client import endpoints
from headlight.model.tracing import pass_spec, trace
from headlight.schemas.circuits import CircuitRequest
from headlight.schemas.generation import GenerateRequest
from headlight.schemas.traces import TraceOptions, TraceRequest, TracesRequest

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


def types_of(form):
    return {name: field.annotation for name, field in form.model_fields.items()}


def hints(function):
    return {name: parameter.annotation for name, parameter in parameters(function).items()}


@pytest.mark.parametrize(
    ("function", "form"), [(endpoints.trace, TraceRequest), (endpoints.traces, TracesRequest)]
)
def test_the_client_takes_several_where_a_request_has_a_list(function, form):
    assert several(types_of(form)) >= {"capture", "layers", "heads", "analyses", "queries", "ids"}
    assert several(hints(function)) == several(types_of(form))


def test_the_client_makes_a_list_of_one_item_where_a_request_has_a_list():
    forms = (TraceRequest, TracesRequest, GenerateRequest, CircuitRequest)
    assert endpoints.LISTS - {"name"} == set().union(*(several(types_of(form)) for form in forms))


def test_one_text_and_several_have_the_same_options_in_the_client():
    of_one, of_several = parameters(endpoints.trace), parameters(endpoints.traces)
    for name in TraceOptions.model_fields:
        assert of_one[name] == of_several[name], name
        assert of_one[name].default is None


def test_the_documentation_of_the_client_names_every_option():
    documented = endpoints.trace.__doc__.partition("Args:\n")[2]
    assert [
        name for name in TraceRequest.model_fields if f"        {name}: " not in documented
    ] == []


def test_a_pass_and_a_trace_in_this_process_have_the_same_options():
    of_pass, of_trace = parameters(pass_spec), parameters(trace)
    assert of_pass.keys() - {"description"} == OF_A_PASS
    for name in OF_A_PASS:
        assert of_pass[name] == of_trace[name], name
    members = {"edits" if name == "interventions" else name for name in OF_A_PASS}
    assert members <= TraceOptions.model_fields.keys()
    assert several(hints(pass_spec)) >= several(types_of(TraceOptions)) & OF_A_PASS
