"""Text responses are compressed and tagged; HEAD is GET without a body."""

import asyncio
import gzip

import pytest

from headlight.middleware.conditional_get import QUICK_BYTES, ConditionalGet
from headlight.serialization.entity_tags import content_tag
from tests.app.reading import DECODERS, raw_get

PATHS = ["/api/v1/models/tiny", "/api/v1/limits", "/openapi.json", "/"]
BODY = {"type": "http.response.body", "body": b"x" * 5_000}


@pytest.mark.parametrize("path", PATHS)
def test_each_coding_of_a_text_has_its_own_tag_and_304(client, path):
    plain = raw_get(client, path, accept_encoding="identity")[1]
    tags = set()
    for coding, decode in DECODERS.items():
        first, raw = raw_get(client, path, accept_encoding=coding)
        assert first.headers.get("content-encoding", "identity") == coding
        assert "Accept-Encoding" in first.headers["vary"].split(", ")
        assert decode(raw) == plain
        assert first.headers["etag"] == content_tag(raw)
        tags.add(first.headers["etag"])
        again, nothing = raw_get(
            client, path, accept_encoding=coding, if_none_match=first.headers["etag"]
        )
        assert (again.status_code, nothing) == (304, b"")
        for name in ("etag", "cache-control", "vary", "content-security-policy"):
            assert again.headers[name] == first.headers[name]
        assert not {"content-encoding", "content-length", "content-type"} & set(again.headers)
    assert len(tags) == len(DECODERS)


def test_a_client_that_refuses_every_coding_gets_the_text(client):
    response, raw = raw_get(client, "/api/v1/limits", accept_encoding="identity;q=0")
    assert (response.status_code, raw[:1]) == (200, b"{")


def test_problems_probes_and_metrics_have_no_tag(client):
    for path in ("/api/v1/models/none", "/healthz", "/readyz", "/metrics"):
        response, _ = raw_get(client, path, if_none_match="*", accept_encoding="gzip")
        assert response.status_code != 304
        assert "etag" not in response.headers


def test_posted_requests_have_no_tag_and_events_are_not_compressed(client):
    for path, asked in {"tokenize": {}, "generate": {"n_tokens": 3}}.items():
        headers = {"if-none-match": "*", "accept-encoding": "gzip"}
        body = {"text": "the cat", **asked}
        response = client.post(f"/api/v1/{path}", headers=headers, json=body)
        assert response.status_code == 200
        assert not {"etag", "content-encoding"} & set(response.headers)


def sent(messages, method="GET", **headers):
    """Return the messages that the layer sends when an application sends these."""
    outgoing = []

    async def application(scope, receive, send):
        for message in messages:
            await send(message)

    async def send(message):
        outgoing.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/", "headers": raw}
    asyncio.run(ConditionalGet(application)(scope, None, send))
    return outgoing


def start(*headers, status=200, media_type=b"application/json"):
    headers = [(b"content-type", media_type), *headers]
    return {"type": "http.response.start", "status": status, "headers": headers}


@pytest.mark.parametrize(
    "messages",
    [
        [start((b"etag", b'"a"')), BODY],
        [start((b"vary", b"Accept, accept-encoding")), BODY],
        [start((b"content-encoding", b"br")), BODY],
        [start(status=503), BODY],
        [start(media_type=b"text/event-stream"), BODY],
        [start(), {**BODY, "more_body": True}, BODY],
    ],
    ids=["tagged", "negotiated", "coded", "error", "events", "pieces"],
)
def test_a_response_that_is_decided_or_in_pieces_passes_unchanged(messages):
    assert sent(messages, accept_encoding="gzip", if_none_match="*") == messages


def test_a_response_that_must_not_be_stored_has_no_tag():
    first, _ = sent([start((b"cache-control", b"no-store")), BODY], if_none_match="*")
    assert (first["status"], b"etag" in dict(first["headers"])) == (200, False)


def test_a_long_text_is_compressed_on_a_thread():
    content = b"ab" * QUICK_BYTES
    body = {"type": "http.response.body", "body": content}
    first, body = sent([start(), body], accept_encoding="gzip")
    assert (b"content-encoding", b"gzip") in first["headers"]
    assert gzip.decompress(body["body"]) == content


@pytest.mark.parametrize("path", [*PATHS, "/metrics", "/docs", "/api/v1/models/nobody"])
def test_head_is_get_without_a_body(client, path):
    get, head = client.get(path), client.head(path)
    assert head.status_code == get.status_code
    assert head.content == b""
    assert head.headers["content-type"] == get.headers["content-type"]
    if path != "/metrics" and get.status_code == 200:  # the metrics count these very requests
        assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/healthz", "GET, HEAD, OPTIONS"),
        ("POST", f"/api/v1/traces/{'0' * 32}", "GET, HEAD, OPTIONS"),
        ("POST", "/openapi.json", "GET, HEAD, OPTIONS"),
        ("HEAD", "/api/v1/trace", "OPTIONS, POST"),
        ("GET", "/api/v1/trace", "OPTIONS, POST"),
    ],
)
def test_the_allow_header_is_true(client, method, path, allow):
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
