"""Cards, limits, OpenAPI and the page have tags; events, problems, probes and metrics have none."""

import asyncio

import pytest

from headlight.middleware.remembered_texts import RememberedTexts
from headlight.serialization.entity_tags import content_tag

CODINGS = ["identity", "gzip", "br", "zstd"]
PATHS = ["/api/v1/models", "/api/v1/models/tiny", "/api/v1/limits", "/openapi.json", "/", "/docs"]


def raw_get(client, path, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    with client.stream("GET", path, headers=headers) as response:
        return response, b"".join(response.iter_raw())


@pytest.mark.parametrize("path", PATHS)
def test_a_client_that_has_a_text_is_told_so(client, path):
    for coding in CODINGS:
        first, raw = raw_get(client, path, accept_encoding=coding)
        assert first.headers["cache-control"] == "no-cache"
        assert first.headers["etag"] == content_tag(raw)
        again, nothing = raw_get(
            client, path, accept_encoding=coding, if_none_match=first.headers["etag"]
        )
        assert (again.status_code, nothing) == (304, b"")
        for name in ("etag", "cache-control", "vary", "content-security-policy"):
            assert again.headers[name] == first.headers[name]
        assert not {"content-encoding", "content-length", "content-type"} & set(again.headers)


@pytest.mark.parametrize("path", PATHS[:-1])
def test_each_coding_has_a_tag_of_its_own(client, path):
    tags = {raw_get(client, path, accept_encoding=coding)[0].headers["etag"] for coding in CODINGS}
    assert len(tags) == len(CODINGS)


def test_another_text_is_sent_whole(client):
    response, raw = raw_get(client, "/api/v1/models", if_none_match='"another"')
    assert response.status_code == 200
    assert raw


def test_problems_probes_and_metrics_have_no_tag(client):
    for path in ("/api/v1/models/none", "/healthz", "/readyz", "/metrics"):
        response, _ = raw_get(client, path, if_none_match="*")
        assert response.status_code != 304
        assert "etag" not in response.headers


def test_what_is_posted_for_has_no_tag(client):
    for path, asked in {"tokenize": {}, "trace": {}, "generate": {"n_tokens": 3}}.items():
        headers = {"if-none-match": "*"}
        body = {"text": "the cat", **asked}
        response = client.post(f"/api/v1/{path}", headers=headers, json=body)
        assert response.status_code == 200
        assert "etag" not in response.headers


def sent(messages, method="GET"):
    """What comes out of the layer for what an application sends."""
    found = []

    async def application(scope, receive, send):
        for message in messages:
            await send(message)

    async def send(message):
        found.append(message)

    scope = {"type": "http", "method": method, "path": "/", "headers": [(b"if-none-match", b"*")]}
    asyncio.run(RememberedTexts(application)(scope, None, send))
    return found


def start(*headers, status=200, media_type=b"application/json"):
    headers = [(b"content-type", media_type), *headers]
    return {"type": "http.response.start", "status": status, "headers": headers}


BODY = {"type": "http.response.body", "body": b"{}"}


@pytest.mark.parametrize(
    "messages",
    [
        [start((b"etag", b'"a"')), BODY],
        [start((b"cache-control", b"no-store")), BODY],
        [start(status=503), BODY],
        [start(media_type=b"text/event-stream"), BODY],
        [start(), {**BODY, "more_body": True}, BODY],
    ],
)
def test_what_was_decided_or_comes_in_pieces_is_left_alone(messages):
    assert sent(messages) == messages


def test_only_what_is_read_is_tagged():
    assert sent([start(), BODY], method="POST") == [start(), BODY]
    assert sent([start(), BODY])[0]["status"] == 304
