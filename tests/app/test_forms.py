"""The id of a request has each of its fields, unless the field says that it changes no number."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel, create_model

from headlight import saved_page
from headlight.client import endpoints
from headlight.forms import Request, identity, option, said_of
from headlight.schemas.traces import TraceFormat, TraceRequest, TracesRequest
from headlight.tracing.jobs import trace_id
from tests.app.other_values import changed, least

FORMATS = {"dtype", "triangle"}
RESOLVED = {"model", "step", "capture", "layers"}
"""Fields in whose place an id has what they name: the revision and the sites of a model."""
EXPLAINING = {"logit_difference", "patching"}
"""Fields of a request for a page that its further answers are about."""


def all_forms(kind: type[BaseModel] = Request) -> Iterator[type[BaseModel]]:
    for each in kind.__subclasses__():
        yield each
        yield from all_forms(each)


FIELDS = [
    (form, name)
    for form in dict.fromkeys(all_forms())
    if form.__module__.startswith(("headlight.schemas", "headlight.analyses"))
    for name in form.model_fields
    if name != "kind"
]
TRACES = [(form, name) for form in (TraceRequest, TracesRequest) for name in form.model_fields]


def in_words(value):
    return value.__name__ if isinstance(value, type) else value


def is_right(form, name, *, is_equal):
    """Return True if equal ids, or different ones, are what the field says of itself."""
    said = said_of(form.model_fields[name])
    return said.is_resolved or is_equal != said.changes_numbers


@pytest.mark.parametrize(("form", "name"), FIELDS, ids=in_words)
def test_another_value_of_a_field_is_another_request(form, name):
    request = least(form)
    is_equal = identity(request) == identity(changed(request, name))
    assert is_right(form, name, is_equal=is_equal)


def test_few_fields_say_that_they_are_no_part_of_the_id():
    said = [(name, said_of(form.model_fields[name])) for form, name in FIELDS]
    assert {name for name, each in said if not each.changes_numbers} == FORMATS
    assert {name for name, each in said if each.is_resolved} == RESOLVED


def ids_of(request):
    requests = request.requests if isinstance(request, TracesRequest) else [request]
    return [trace_id("r1", "float32", each, ["logits"]) for each in requests]


@pytest.mark.parametrize(("form", "name"), TRACES, ids=in_words)
def test_the_ids_of_traces_are_those_of_their_requests(form, name):
    request = form(model="a", **{"text": "a"} if form is TraceRequest else {"texts": ["a"]})
    other = changed(request, name)
    if name == "ids" and form is TracesRequest:
        other = other.model_copy(update={"texts": None})
    assert is_right(form, name, is_equal=ids_of(request) == ids_of(other))


@pytest.mark.parametrize("standard", [None, "bits"])
def test_a_field_that_is_added_is_part_of_the_id_and_of_the_page(standard):
    members = {"unit": (str | None, option(standard, "The unit.")), "shade": (str, "light")}
    form = create_model("Form", __base__=TraceRequest, **members)
    request = form(text="a")
    others = [changed(request, name) for name in ("unit", "shade")]
    assert len({*ids_of(request), *ids_of(others[0]), *ids_of(others[1])}) == 3


@pytest.mark.parametrize("name", sorted(TraceRequest.model_fields.keys() - EXPLAINING))
def test_the_requests_of_a_page_have_each_field_of_its_own_request(name):
    card = {"sites": [{"name": "logits"}], "kind": "encoder", "analyses": ["next_token"]}
    card |= {"trained_tokens": None}
    read = {"ids": [9], "messages": [{"role": "user", "content": "b"}]}
    text = {name: read[name]} if name in read else {"text": "a"}
    request = TraceRequest(model="a", resolution=2, **text)
    asked = [
        saved_page.whole_requests(each, card)[-1] for each in (request, changed(request, name))
    ]
    plain = [each.model_dump(exclude={"triangle"}) for each in asked]
    assert (plain[0] == plain[1]) == (name == "triangle")


@pytest.mark.parametrize("name", TraceFormat.model_fields)
def test_a_client_keeps_each_format_of_a_trace_by_itself(name):
    formats = [TraceFormat(), changed(TraceFormat(), name)]
    keys = {endpoints.trace_by_id("a" * 32, **each.model_dump()).key for each in formats}
    assert len(keys) == 2
