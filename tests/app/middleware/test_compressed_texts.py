"""Cards, OpenAPI and pages are compressed for who takes it; events, problems and files are not."""

import asyncio
import gzip

import brotli
import pytest
import zstandard

from headlight.middleware.compressed_texts import QUICK_BYTES, CompressedTexts

DECODERS = {
    "zstd": lambda content: zstandard.ZstdDecompressor().decompressobj().decompress(content),
    "br": brotli.decompress,
    "gzip": gzip.decompress,
}
PATHS = ["/api/v1/models", "/openapi.json", "/", "/metrics"]


def raw_get(client, path, coding):
    with client.stream("GET", path, headers={"accept-encoding": coding}) as response:
        return response, b"".join(response.iter_raw())


@pytest.mark.parametrize("coding", DECODERS)
@pytest.mark.parametrize("path", PATHS)
def test_a_text_is_compressed_for_who_takes_it(client, path, coding):
    response, raw = raw_get(client, path, coding)
    plain, expected = raw_get(client, path, "identity")
    assert response.headers["content-encoding"] == coding
    assert "content-encoding" not in plain.headers
    assert "Accept-Encoding" in response.headers["vary"]
    assert "Accept-Encoding" in plain.headers["vary"]
    assert int(response.headers["content-length"]) == len(raw) < len(expected)
    if path != "/metrics":  # which counts these very requests
        assert DECODERS[coding](raw) == expected


def test_who_takes_no_coding_gets_a_text_as_it_is(client):
    response, raw = raw_get(client, "/api/v1/limits", "identity;q=0")
    assert (response.status_code, raw[:1]) == (200, b"{")


def test_short_texts_and_problems_are_sent_as_they_are(client, problem):
    for path in ("/healthz", "/api/v1/models/none"):
        response, _ = raw_get(client, path, "gzip")
        assert "content-encoding" not in response.headers


def test_events_are_never_compressed(client):
    asked = {"json": {"text": "the cat", "n_tokens": 3}}
    headers = {"accept-encoding": "gzip, br, zstd"}
    with client.stream("POST", "/api/v1/generate", headers=headers, **asked) as response:
        raw = b"".join(response.iter_raw())
    assert "content-encoding" not in response.headers
    assert raw.startswith(b"event: start")


def sent(messages, accept="gzip"):
    """What comes out of the layer for what an application sends."""
    found = []

    async def application(scope, receive, send):
        for message in messages:
            await send(message)

    async def send(message):
        found.append(message)

    scope = {"type": "http", "headers": [(b"accept-encoding", accept.encode())]}
    asyncio.run(CompressedTexts(application)(scope, None, send))
    return found


def start(*headers, status=200):
    json_type = (b"content-type", b"application/json")
    return {"type": "http.response.start", "status": status, "headers": [json_type, *headers]}


LONG = {"type": "http.response.body", "body": b"x" * 5_000}


@pytest.mark.parametrize(
    "header",
    [(b"etag", b'"a"'), (b"vary", b"Accept, accept-encoding"), (b"content-encoding", b"br")],
)
def test_an_answer_that_chose_its_coding_is_left_alone(header):
    messages = [start(header), LONG]
    assert sent(messages) == messages


def test_an_answer_in_pieces_is_passed_on_piece_by_piece():
    messages = [start(), {**LONG, "more_body": True}, LONG]
    assert sent(messages) == messages


def test_a_long_text_is_compressed_on_a_thread_into_the_same_bytes():
    content = b"ab" * QUICK_BYTES
    first, body = sent([start(), {"type": "http.response.body", "body": content}])
    assert (b"content-encoding", b"gzip") in first["headers"]
    assert gzip.decompress(body["body"]) == content


def test_an_error_is_left_alone():
    messages = [start(status=503), LONG]
    assert sent(messages) == messages
