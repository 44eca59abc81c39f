"""Every problem is an exception of its own class, with all members of the problem document."""

import pickle

import httpx
import pytest

from headlight.client import errors
from headlight.client.errors import error_in


def answer(status, headers=None, **members):
    document = {"type": "urn:headlight:problem:some-kind", "title": "T", "detail": "because"}
    return httpx.Response(status, headers=headers, json={**document, "status": status, **members})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.InvalidRequest),
        (401, errors.Unauthorized),
        (404, errors.NotFound),
        (422, errors.InvalidRequest),
        (429, errors.TooManyRequests),
        (500, errors.ServerFault),
        (503, errors.Unavailable),
        (504, errors.TooSlow),
    ],
)
def test_a_status_has_a_class(status, kind):
    found = error_in(answer(status))
    assert type(found) is kind
    assert isinstance(found, errors.ProblemError)
    assert isinstance(found, errors.HeadlightError)
    assert str(found) == f"because ({status} some-kind)"


def test_all_members_are_kept():
    headers = {"Retry-After": "7", "X-Request-ID": "abc"}
    found = error_in(answer(422, headers, limit=3, actual=5, errors=[1]))
    assert isinstance(found, errors.OverLimit)
    assert (found.limit, found.actual, found.members["errors"]) == (3, 5, [1])
    assert (found.retry_after, found.request_id) == (7, "abc")
    assert (found.status, found.kind, found.title) == (422, "some-kind", "T")


def test_an_error_can_be_pickled():
    found = error_in(answer(503, {"Retry-After": "7"}))
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is errors.Unavailable
    assert (again.retry_after, str(again)) == (7, str(found))


@pytest.mark.parametrize("body", [b"", b"<h1>Bad Gateway</h1>", b"[]", b'{"error": 1}', b"\xff"])
def test_an_error_that_is_not_a_problem_is_unreadable(body):
    assert isinstance(error_in(httpx.Response(502, content=body)), errors.UnreadableAnswer)


def test_a_redirect_is_unreadable_and_names_its_target():
    found = error_in(httpx.Response(307, headers={"Location": "https://elsewhere.test/"}))
    assert isinstance(found, errors.UnreadableAnswer)
    assert "https://elsewhere.test/" in str(found)


@pytest.mark.parametrize("wait", ["soon", "Wed, 21 Oct 2026 07:28:00 GMT", "nan?"])
def test_a_retry_after_that_is_not_a_number_is_ignored(wait):
    assert error_in(answer(503, {"Retry-After": wait})).retry_after is None
