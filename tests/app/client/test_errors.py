"""Every status has its own exception class, with all members of the problem document."""

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
    error = error_in(answer(status))
    assert type(error) is kind
    assert isinstance(error, errors.ProblemError)
    assert isinstance(error, errors.HeadlightError)
    assert str(error) == f"because ({status} some-kind)"


def test_all_members_are_kept():
    headers = {"Retry-After": "7", "X-Request-ID": "abc"}
    error = error_in(answer(422, headers, limit=3, actual=5, errors=[1]))
    assert isinstance(error, errors.OverLimit)
    assert (error.limit, error.actual, error.members["errors"]) == (3, 5, [1])
    assert (error.retry_after, error.request_id) == (7, "abc")
    assert (error.status, error.kind, error.title) == (422, "some-kind", "T")


def test_an_error_can_be_pickled():
    error = error_in(answer(503, {"Retry-After": "7"}))
    unpickled = pickle.loads(pickle.dumps(error))
    assert type(unpickled) is errors.Unavailable
    assert (unpickled.retry_after, str(unpickled)) == (7, str(error))


@pytest.mark.parametrize("body", [b"", b"<h1>Bad Gateway</h1>", b"[]", b'{"error": 1}', b"\xff"])
def test_an_error_that_is_not_a_problem_is_unreadable(body):
    assert isinstance(error_in(httpx.Response(502, content=body)), errors.UnreadableAnswer)


def test_a_redirect_is_unreadable_and_names_its_target():
    error = error_in(httpx.Response(307, headers={"Location": "https://elsewhere.test/"}))
    assert isinstance(error, errors.UnreadableAnswer)
    assert "https://elsewhere.test/" in str(error)


@pytest.mark.parametrize("wait", ["soon", "Wed, 21 Oct 2026 07:28:00 GMT", "nan?"])
def test_a_retry_after_that_is_not_a_number_is_ignored(wait):
    assert error_in(answer(503, {"Retry-After": wait})).retry_after is None
