"""Problems name the value, the rule and the way out, and never repeat a whole request."""

import json

import pytest

from headlight.problems import MAX_ECHO, MAX_ERRORS, Problem, echo, over_limit, validation_path

EDITS = {
    "edits": [
        {"kind": "temperature", "temperature": 1, "value": 0},
        {"kind": []},
        3,
        {"kind": "set"},
    ]
}


def body_of(problem):
    return json.loads(problem.response().body)


def test_a_problem_has_the_members_of_rfc_9457():
    body = body_of(Problem(404, "unknown-model", "there is none", available=["a"]))
    assert body == {
        "type": "urn:headlight:problem:unknown-model",
        "title": "Unknown model",
        "status": 404,
        "detail": "there is none",
        "available": ["a"],
    }


def test_a_broken_limit_has_both_numbers():
    problem = over_limit("tokens", limit=64, actual=1234, way_out="be brief")
    assert problem.detail == "1,234 tokens are more than the 64 that are allowed; be brief"
    body = body_of(problem)
    assert body["title"] == "Too many tokens"
    assert (body["status"], body["limit"], body["actual"]) == (422, 64, 1234)


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
    ("asked", "detail"),
    [
        ({"edits": [{"kind": "nope"}]}, "edits.0: the 'kind' 'nope' is unknown; it is one of "),
        ({"edits": [{}]}, "edits.0: an object has no member 'kind'; send one"),
        ({"edits": [{"kind": "set", "site": "logits"}]}, "edits.0: send either value or from"),
        ({"layers": []}, "layers: has 0 entries; send at least 1, or leave the member out"),
        ({"layers": 1}, "layers: 1 is not a list"),
        ({"heads": [-1]}, "heads.0: must be at least 0, not -1"),
        ({"resolution": 0}, "resolution: must be at least 1 and at most 1024, not 0"),
        ({"dtype": "int8"}, "dtype: 'int8' is not one of 'float32' or 'uint16'"),
        ({"capture": ["a" * 81]}, "capture.0: has 81 characters; send at most 80"),
        ({"triangle": 1}, "triangle: 1 is neither true nor false"),
        ({"patching": {}}, "patching.text: is missing; send it"),
        ({"text": None}, "text: is missing; send either text, ids or messages"),
    ],
    ids=str,
)
def test_an_invalid_member_is_told_by_its_value_and_its_rule(client, problem, asked, detail):
    body = json.dumps({"text": "the cat", **asked})
    headers = {"Content-Type": "application/json"}
    details = problem(
        client.post("/api/v1/trace", content=body, headers=headers), 422, "invalid-request"
    )
    assert details["detail"].startswith(detail)


def test_an_id_that_is_none_is_told_from_a_trace_that_is_not_kept(client, problem):
    details = problem(client.get("/api/v1/traces/xyz"), 422, "invalid-request")
    assert details["detail"].startswith("trace_id: 'xyz' is not the id of a trace: 32 digits")


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (["edits", 0, "temperature", "value"], ["edits", 0, "value"]),
        (["edits", 0, "temperature", "temperature"], ["edits", 0, "temperature"]),
        (["edits", 0, "temperature"], ["edits", 0, "temperature"]),
        (["edits", 1, "kind"], ["edits", 1, "kind"]),
        (["edits", 3, "set"], ["edits", 3]),
        (["edits", 9, "heads"], ["edits", 9, "heads"]),
    ],
)
def test_a_path_has_no_tag_that_nobody_sent(location, path):
    assert validation_path(location, EDITS) == path
