"""Bodies that are not JSON, or JSON of another shape, are a problem on each route that reads one.

A new probe is one line of `MALFORMED`, `MISSHAPEN` or `VALUES`, a new route none at all.
"""

import json
from itertools import product

import httpx
import pytest

from headlight.main import EXAMPLES
from headlight.model.experiments.experiment_registry import EXPERIMENTS

DEEP = 60_000
"""Brackets on either side that fit into the largest body."""

MALFORMED = {
    "nothing of JSON": b"text",
    "half an object": b'{"text": "a"',
    "half a string": b'{"text": "a',
    "half an escape": b'{"text": "\\u00',
    "NaN": b'{"text": NaN}',
    "Infinity": b'{"text": "a", "temperature": Infinity}',
    "minus Infinity": b'{"text": -Infinity}',
    "a number beyond all numbers": b'{"text": "a", "temperature": 1e999}',
    "a number beyond all numbers, below": b'{"text": "a", "layers": [-1e999]}',
    "a plus sign": b'{"text": +1}',
    "a leading zero": b'{"layers": [01]}',
    "an integer of 5,000 digits": b'{"text": "a", "layers": [' + b"9" * 5_000 + b"]}",
    "an integer of 100,000 digits": b'{"seed": ' + b"9" * 100_000 + b"}",
    "a fraction of 100,000 digits": b'{"seed": 0.' + b"9" * 100_000 + b"e99999}",
    "a lone surrogate in a value": b'{"text": "a\\ud800b"}',
    "a lone surrogate, the lower one": b'{"text": "\\udfff"}',
    "surrogates the wrong way round": b'{"text": "\\udc00\\ud800"}',
    "a lone surrogate in a field": b'{"model": "\\ud83d"}',
    "a lone surrogate in a key": b'{"\\ud800": "a"}',
    "a lone surrogate in a list": b'{"text": "a", "capture": ["\\ud800"]}',
    "a lone surrogate in bytes": b'{"text": "\xed\xa0\x80"}',
    "an overlong slash": b'{"text": "\xc0\xaf"}',
    "an overlong NUL": b'{"text": "\xe0\x80\x80"}',
    "half a character": b'{"text": "\xf0\x9f"}',
    "a character beyond Unicode": b'{"text": "\xf4\x90\x80\x80"}',
    "Latin-1": '{"text": "é"}'.encode("latin-1"),
    "UTF-16": '{"text": "a"}'.encode("utf-16"),
    "UTF-32": '{"text": "a"}'.encode("utf-32-le"),
    "a byte order mark": b'\xef\xbb\xbf{"text": "a"}',
    "a bare control character": b'{"text": "\x00"}',
    "bytes": bytes(range(256)),
    "NULs": bytes(1_000),
    "two documents": b'{"text": "a"} {}',
    "a comma too many": b'{"text": "a",}',
    "a comment": b'{"text": "a" /* b */}',
    "quotes of Python": b"{'text': 'a'}",
    "brackets that never close": b"[" * 100_000,
    "brackets 60,000 deep": b"[" * DEEP + b"]" * DEEP,
    "objects 20,000 deep": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "a text 20,000 deep": b'{"text":' + b"[" * DEEP + b"]" * DEEP + b"}",
}
MISSHAPEN = {
    "no body": b"",
    "null": b"null",
    "a list": b"[]",
    "a string": b'"text"',
    "a number": b"1e300",
    "minus zero": b"-0",
    "no member": b"{}",
    "a list of requests": b'[{"text": "a"}]',
    "no text": b'{"model": "tiny"}',
    "an unknown member": b'{"text": "a", "n_tokens": 1, "text2": "a"}',
    "a member by another name": b'{"Text": "a", "n_tokens": 1}',
    "a prototype": b'{"text": "a", "n_tokens": 1, "__proto__": {"text": "b"}}',
    "an empty key": b'{"text": "a", "n_tokens": 1, "": 1}',
    "a key of 100,000 letters": b'{"text": "a", "' + b"k" * 100_000 + b'": 1}',
    "5,000 unknown members": json.dumps({f"k{number}": 1 for number in range(5_000)}).encode(),
    "a text of 100 levels": b'{"text":' + b"[" * 100 + b"]" * 100 + b"}",
}
VALUES = (
    *(None, True, 0, -1, 1.5, 2**31, 2**63, 2**64, -1e300),
    *("", "1", "\0", "a" * 300, "\ufeff", "../tiny", "*", "a[", "[!a]*"),
    *([], [[]], [None], [True], [0], [-1], [2**63], [0.5], ["*"], [""], [{}]),
    *([0, 0], ["*"] * 65, ["*" * 200], ["**/*?[a]" * 20], list(range(300))),
    *({}, {"a": 1}, [{"kind": "heads_off"}], [{"kind": []}], [{"kind": "temperature", "value": 0}]),
)


BY_HAND = EXPERIMENTS["by_hand"]
BY_HAND_PATH = "/api/v1/experiments/by_hand"


def requests_by_route():
    """Return the schema of the body of every route that reads one, as committed."""
    document = json.loads(EXAMPLES.with_name("openapi.json").read_text())
    posts = {
        path: operations["post"]
        for path, operations in document["paths"].items()
        if "post" in operations
    }
    schemas = {
        path: post["requestBody"]["content"]["application/json"]["schema"]
        for path, post in posts.items()
        if "requestBody" in post
    }
    del schemas["/api/v1/experiments/{experiment}"]  # each experiment has its own schema
    named = document["components"]["schemas"]
    by_path = {path: named[schema["$ref"].rpartition("/")[2]] for path, schema in schemas.items()}
    return by_path | {BY_HAND_PATH: BY_HAND.parameters.model_json_schema()}


REQUESTS = requests_by_route()


@pytest.fixture
def post(exchange):
    """Return a function that sends bytes as the JSON body of a request."""

    def send(path, body):
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return exchange(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    return send


def test_every_route_that_reads_a_body_is_probed():
    assert {"/api/v1/trace", "/api/v1/tokenize", "/api/v1/generate"} <= set(REQUESTS)


def refused(post, assert_problem, path, body):
    """Return the kind and the members of the problem that answers a body."""
    details = assert_problem(post(path, body), body)
    return details["type"].rpartition(":")[2], details


@pytest.mark.parametrize("path", REQUESTS)
def test_bodies_that_are_not_json_are_malformed(server, post, assert_problem, path):
    before = httpx.post(f"{server.url}/api/v1/trace", json={"text": "the cat sat"}).json()
    for name, body in MALFORMED.items():
        kind, details = refused(post, assert_problem, path, body)
        assert (details["status"], kind) == (400, "malformed-json"), name
    after = httpx.post(f"{server.url}/api/v1/trace", json={"text": "the cat sat"}).json()
    assert {**after, "timings": {}} == {**before, "timings": {}}, "the next client sees no change"


@pytest.mark.parametrize("path", REQUESTS)
def test_json_of_another_shape_is_invalid_and_each_error_is_named(post, assert_problem, path):
    for name, body in MISSHAPEN.items():
        if body == b"{}" and path == BY_HAND_PATH:
            continue  # each of its parameters has a default
        kind, details = refused(post, assert_problem, path, body)
        assert kind == "invalid-request", name
        assert details["errors"], name


@pytest.mark.parametrize("path", REQUESTS)
def test_any_value_of_a_member_is_answered_or_refused(post, assert_problem, path):
    members = REQUESTS[path]["properties"]
    for member, value in product(members, VALUES):
        defaults = {"text": "the cat", "n_tokens": 2}
        order = {name: default for name, default in defaults.items() if name in members} | {
            member: value
        }
        body = json.dumps(order).encode()
        reply = post(path, body)
        assert reply is not None, (member, value)
        if reply.status not in (200, 201):
            assert_problem(reply, body)


@pytest.mark.parametrize("path", REQUESTS)
def test_of_two_equal_keys_neither_counts(post, assert_problem, path):
    kind, _ = refused(post, assert_problem, path, b'{"text": "the first", "text": "a"}')
    assert kind == "duplicate-key"
