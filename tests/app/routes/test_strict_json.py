"""Hostile bodies: each is a problem, none is a 500, none takes long."""

import json
import re

import pytest

from headlight.routes import ROUTERS

CALLS = ["/api/v1/trace", "/api/v1/tokenize"]
JSON = {"content-type": "application/json"}
WITH_BODY = [route for router in ROUTERS for route in router.routes if route.body_field]


@pytest.mark.parametrize(
    ("body", "sentence", "position"),
    [
        (b'{"text": "\xff\xfe"}', "it is not UTF-8 at byte 10 (0xff); send it as UTF-8", 10),
        ('{"text": "a"}'.encode("utf-16"), "it is not UTF-8 at byte 0 (0xff)", 0),
        (b'{"text": "\xed\xa0\x80"}', "it is not UTF-8 at byte 10 (0xed)", 10),
        (b"[1e999]", "a number is larger than this server reads", 1),
        (b"[" + b"9" * 5_000 + b"]", "a number is larger than this server reads", 1),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_wrong_with_it_is_said_with_its_place(client, problem, body, sentence, position):
    response = client.post("/api/v1/trace", content=body, headers=JSON)
    details = problem(response, 400, "malformed-json")
    assert details["detail"].startswith(f"the body is not JSON: {sentence}")
    assert details["position"] == position


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"text": "a", "text": "b"}', "text"),
        (b'{"text": "a", "te\\u0078t": "b"}', "text"),
        (b'{"text": "a", "edits": [{"kind": "heads_off", "heads": [], "heads": []}]}', "heads"),
        (b'{"text": "a", "nobody": 1, "nobody": 1}', "nobody"),
    ],
)
@pytest.mark.parametrize("call", CALLS)
def test_a_key_that_occurs_twice_is_rejected_and_named(client, problem, call, body, key):
    details = problem(client.post(call, content=body, headers=JSON), 400, "duplicate-key")
    assert f"'{key}' occurs twice" in details["detail"]


def test_one_key_in_two_objects_is_no_duplicate(client):
    edits = [{"kind": "temperature", "value": 2}, {"kind": "uniform_attention", "value": 3}]
    body = json.dumps({"text": "a", "edits": edits}).encode()
    response = client.post("/api/v1/trace", content=body, headers=JSON)
    assert "duplicate-key" not in response.text


@pytest.mark.parametrize("depth", [900, 1020])
def test_a_deep_body_is_told_what_is_wrong_with_it(client, problem, depth):
    body = b'{"text": ' + b"[" * depth + b"]" * depth + b"}"
    problem(client.post("/api/v1/trace", content=body, headers=JSON), 422, "invalid-request")


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"3", b""])
def test_a_body_that_is_no_object_is_told_so(client, problem, body):
    response = client.post("/api/v1/trace", content=body, headers=JSON)
    details = problem(response, 422, "invalid-request")
    assert details["detail"] == "the body must be a JSON object"


def test_a_wrong_member_is_named_as_it_was_sent(client, problem):
    edits = [{"kind": "temperature", "value": 0}, {"kind": "heads_off"}]
    response = client.post("/api/v1/trace", json={"text": "a", "edits": edits})
    details = problem(response, 422, "invalid-request")
    assert [each["field"] for each in details["errors"]] == ["edits.0.value", "edits.1.heads"]


def test_an_unknown_member_names_the_members(client, problem):
    response = client.post("/api/v1/tokenize", json={"text": "a", "txt": "b"})
    details = problem(response, 422, "invalid-request")
    assert details["detail"] == (
        "txt: unknown member; the members are step, ids, messages, text, text_pair, model, "
        "special_tokens, read_special_tokens"
    )


@pytest.mark.parametrize("seed", [-1, 2**63, 10**30])
def test_a_number_out_of_range_names_the_range(client, problem, seed):
    body = {"text": "a", "n_tokens": 1, "seed": seed}
    details = problem(client.post("/api/v1/generate", json=body), 422, "invalid-request")
    shown = f", not {seed}" if seed < 2**64 else ""
    assert details["detail"] == f"seed: must be at least 0 and less than 2^63{shown}"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/x-www-form-urlencoded", "jsonish", "\xe4"]
)
def test_a_body_of_another_type_is_unsupported(client, problem, call, content_type):
    headers = {"content-type": content_type.encode("latin-1")} if content_type else {}
    response = client.post(call, content=b'{"text": "a"}', headers=headers)
    problem(response, 415, "unsupported-media-type")
    assert response.headers["accept-post"] == "application/json"


def test_json_by_another_name_is_read(client):
    headers = {"content-type": "Application/LD+JSON; charset=utf-8"}
    response = client.post("/api/v1/tokenize", content=b'{"text": "a"}', headers=headers)
    assert response.status_code == 200


def test_a_text_is_counted_before_it_is_normalised(client, problem):
    """NFC takes time that grows with the square of a run of combining marks."""
    response = client.post("/api/v1/trace", json={"text": "e" + "\u0301" * 60_000})
    assert problem(response, 422, "too-many-characters")["actual"] == 60_001


def test_every_route_with_a_body_reads_only_json(client, problem):
    assert len(WITH_BODY) >= 11
    for route in WITH_BODY:
        path = re.sub(r"\{\w+\}", "tiny", route.path)
        plain = client.post(path, content=b"{}", headers={"content-type": "text/plain"})
        problem(plain, 415, "unsupported-media-type")


def test_many_faults_are_counted_and_few_are_told(client, problem):
    body = {"text": "a"} | {f"unknown{number}": 1 for number in range(3_000)}
    details = problem(client.post("/api/v1/trace", json=body), 422, "invalid-request")
    assert len(details["errors"]) == 10
    assert details["detail"].endswith("and 2997 more")
