"""Problems name the value, the rule and the way out, and never repeat a whole request."""

import json

import pytest

from headlight.errors import MAX_ECHO, MAX_ERRORS, Problem, echo, over_limit, validation_path

EDITS = {"edits": [{"kind": "temperature", "temperature": 1, "value": 0}, {"kind": []}, 3]}


def body_of(problem):
    return json.loads(problem.response().body)


def test_a_problem_has_the_members_of_rfc_9457():
    found = body_of(Problem(404, "unknown-model", "there is none", available=["a"]))
    assert found == {
        "type": "urn:headlight:problem:unknown-model",
        "title": "Unknown model",
        "status": 404,
        "detail": "there is none",
        "available": ["a"],
    }


def test_a_broken_limit_has_both_numbers():
    problem = over_limit("tokens", limit=64, actual=1234, way_out="be brief")
    assert problem.detail == "1,234 tokens are more than the 64 that are allowed; be brief"
    found = body_of(problem)
    assert found["title"] == "Too many tokens"
    assert (found["status"], found["limit"], found["actual"]) == (422, 64, 1234)


def test_what_is_repeated_is_cut():
    assert echo("short") == "'short'"
    assert len(echo("x" * 10_000)) == MAX_ECHO + 3


def test_a_lone_surrogate_in_a_sentence_is_no_error():
    assert body_of(Problem(400, "odd", "say \ud800"))["detail"] == "say ?"


def test_many_errors_are_counted_and_some_are_shown(client, problem):
    body = problem(
        client.post("/api/v1/trace", json={"text": "a", "layers": ["x"] * 50}),
        422,
        "invalid-request",
    )
    assert len(body["errors"]) == MAX_ERRORS
    assert body["detail"].endswith("and 47 more")


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (["edits", 0, "temperature", "value"], ["edits", 0, "value"]),
        (["edits", 0, "temperature", "temperature"], ["edits", 0, "temperature"]),
        (["edits", 1, "kind"], ["edits", 1, "kind"]),
        (["edits", 9, "heads"], ["edits", 9, "heads"]),
        (["text"], ["text"]),
        ([], []),
    ],
)
def test_a_path_has_no_tag_that_nobody_sent(location, path):
    assert validation_path(location, EDITS) == path


@pytest.mark.parametrize("body", [None, [], "edits", 3])
def test_a_path_needs_no_body_of_its_shape(body):
    assert validation_path(["edits", 0, "value"], body) == ["edits", 0, "value"]
