"""Every problem is an exception of its own class, with everything the server said."""

import json
import pickle

import pytest

from headlight.client import errors
from headlight.client.errors import problem_of


def answer(status, **members):
    document = {"type": "urn:headlight:problem:some-kind", "title": "T", "detail": "because"}
    return json.dumps({**document, "status": status, **members}).encode()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.InvalidRequest),
        (401, errors.Unauthorized),
        (404, errors.NotFound),
        (406, errors.InvalidRequest),
        (413, errors.InvalidRequest),
        (415, errors.InvalidRequest),
        (422, errors.InvalidRequest),
        (429, errors.TooManyRequests),
        (500, errors.ServerFault),
        (503, errors.Unavailable),
        (504, errors.TooSlow),
    ],
)
def test_a_status_has_a_class(status, kind):
    found = problem_of(status, {}, answer(status))
    assert type(found) is kind
    assert isinstance(found, errors.ProblemError)
    assert isinstance(found, errors.HeadlightError)
    assert str(found) == f"because ({status} some-kind)"


def test_all_that_was_said_is_kept():
    headers = {"Retry-After": "7", "X-Request-ID": "abc"}
    found = problem_of(422, headers, answer(422, limit=3, actual=5, errors=[1]))
    assert isinstance(found, errors.OverLimit)
    assert (found.limit, found.actual, found.members["errors"]) == (3, 5, [1])
    assert (found.retry_after, found.request_id) == (7, "abc")
    assert (found.status, found.kind, found.title) == (422, "some-kind", "T")


def test_another_process_can_be_told():
    found = problem_of(503, {"Retry-After": "7"}, answer(503))
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is errors.Unavailable
    assert (again.retry_after, str(again)) == (7, str(found))


@pytest.mark.parametrize("body", [b"", b"<h1>Bad Gateway</h1>", b"[]", b'{"error": 1}', b"\xff"])
def test_what_is_no_problem_is_no_headlight(body):
    found = problem_of(502, {}, body)
    assert isinstance(found, errors.UnreadableAnswer)
    assert "status 502 and is no problem document" in str(found)


@pytest.mark.parametrize("wait", ["soon", "Wed, 21 Oct 2026 07:28:00 GMT", "nan?"])
def test_a_wait_that_is_no_number_is_none(wait):
    assert problem_of(503, {"Retry-After": wait}, answer(503)).retry_after is None
