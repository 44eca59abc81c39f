"""Hostile bodies: each is a problem, none is a 500, none takes long."""

import pytest

CALLS = ["/api/v1/trace", "/api/v1/tokenize"]
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"text",
        b'{"text": NaN}',
        b'{"text": Infinity}',
        b'{"text": -Infinity}',
        b'{"text": 1e999}',
        b'{"layers": [1e999]}',
        b'{"text": "\\ud800"}',
        b'{"text": "a\\udfffb"}',
        b'{"model": "\\ud83d"}',
        b'{"\\ud800": "a"}',
        b'{"text": "a", "\\udc00": 1}',
        b'{"text": "\xed\xa0\x80"}',
        b'{"text": "\xff\xfe"}',
        b"\xff",
        b'{"text": "a",}',
        b"{'text': 'a'}",
        b'{"text": "a"} {}',
        b'{"text": "\x00"}',
        b"[" * 20_000,
        b"[" * 20_000 + b"]" * 20_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        b'{"layers": [' + b"9" * 5_000 + b"]}",
        b'{"text": ' + b"9" * 5_000 + b"}",
    ],
    ids=lambda body: repr(body[:18] + body[-6:]),
)
def test_what_is_no_json_is_malformed(client, problem, call, body):
    found = problem(client.post(call, content=body, headers=JSON), 400, "malformed-json")
    assert found["detail"].startswith("the body is not JSON: ")
    assert isinstance(found["position"], int)
    assert found["title"] == "Malformed JSON"


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
    found = problem(response, 400, "malformed-json")
    assert found["detail"].startswith(f"the body is not JSON: {sentence}")
    assert found["position"] == position


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"3", b""])
def test_a_body_that_is_no_object_is_told_so(client, problem, body):
    response = client.post("/api/v1/trace", content=body, headers=JSON)
    found = problem(response, 422, "invalid-request")
    assert found["detail"] == "the body must be a JSON object"


def test_a_wrong_member_is_named_as_it_was_sent(client, problem):
    edits = [{"kind": "temperature", "value": 0}, {"kind": "heads_off"}]
    response = client.post("/api/v1/trace", json={"text": "a", "edits": edits})
    found = problem(response, 422, "invalid-request")
    assert [each["field"] for each in found["errors"]] == ["edits.0.value", "edits.1.heads"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"null", "body"),
        (b"[]", "body"),
        (b'"text"', "body"),
        (b"{}", "text"),
        (b"", "body"),
        (b'{"text": 1e300}', "text"),
        (b'{"text": {}}', "text"),
        (b'{"text": "a", "model": 18446744073709551616}', "model"),
        (b'{"text": "a", "__proto__": {}}', "__proto__"),
        (b'{"text": "a", "' + b"k" * 5_000 + b'": 1}', "k" * 80),
    ],
    ids=lambda value: repr(value[:18]),
)
def test_json_of_another_shape_is_invalid(client, problem, call, body, field):
    found = problem(client.post(call, content=body, headers=JSON), 422, "invalid-request")
    assert found["errors"][0]["field"] == field


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


def test_of_two_equal_keys_the_last_counts(client):
    body = b'{"text": "first", "text": "last"}'
    assert client.post("/api/v1/trace", content=body, headers=JSON).json()["text"] == "last"


def test_a_text_is_counted_before_it_is_normalised(client, problem):
    """NFC takes time that grows with the square of a run of combining marks."""
    response = client.post("/api/v1/trace", json={"text": "e" + "\u0301" * 60_000})
    assert problem(response, 422, "too-many-characters")["actual"] == 60_001


@pytest.mark.parametrize(
    "text",
    [
        "\u0000",
        "e" + "\u0301" * 20,
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "\u202eright to left",
        "\ufeff\u200b",
        "<s></s>",
        "<script>alert(1)</script>",
        "\uffff\U0010ffff",
    ],
)
def test_odd_but_valid_text_comes_back_unchanged(client, text):
    body = client.post("/api/v1/tokenize", json={"text": text}).json()
    assert body["tokens"][-1]["end"] == len(text)
    assert not any(token["is_special"] for token in body["tokens"][1:])
