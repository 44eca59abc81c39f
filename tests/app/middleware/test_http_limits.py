"""Headers, bodies and the time that a body takes are limited."""

import asyncio

import pytest

from headlight.errors import Problem
from headlight.middleware.http_limits import BodyTimeout, header_bytes
from headlight.settings import MAX_HEADER_BYTES


def scope_of(*headers):
    return {"type": "http", "path": "/", "query_string": b"", "headers": list(headers)}


def run(layer, scope, receive=None):
    async def send(message):
        pass

    asyncio.run(layer(scope, receive, send))


async def read_body(scope, receive, send):
    while (await receive()).get("more_body"):
        pass


def test_target_query_and_headers_count():
    scope = {
        "path": "/é",
        "raw_path": b"/%c3%a9",
        "query_string": b"a=b",
        "headers": [(b"x", b"y")],
    }
    assert header_bytes(scope) == 7 + 3 + 2
    assert header_bytes({**scope, "raw_path": None}) == 2 + 3 + 2


def test_headers_that_are_too_large_are_rejected(client, problem):
    found = client.get("/healthz", headers={"x-a": "a" * MAX_HEADER_BYTES})
    assert problem(found, 431, "headers-too-large")["limit"] == MAX_HEADER_BYTES
    assert found.headers["connection"] == "close"
    assert client.get("/healthz", headers={"x-a": "a" * 20_000}).status_code == 200


def test_a_body_that_does_not_arrive_is_rejected():
    async def never():
        await asyncio.Event().wait()

    with pytest.raises(Problem) as caught:
        run(BodyTimeout(read_body, 0.01), scope_of((b"content-length", b"9")), never)
    assert (caught.value.status_code, caught.value.kind) == (408, "body-too-slow")
    assert caught.value.members["limit"] == 0.01


def test_the_deadline_ends_with_the_body():
    messages = [{"type": "http.request"}, {"type": "http.disconnect"}]

    async def receive():
        if len(messages) == 1:
            await asyncio.sleep(0.05)
        return messages.pop(0)

    async def application(scope, receive, send):
        await receive()
        await receive()

    run(BodyTimeout(application, 0.02), scope_of((b"content-length", b"0")), receive)
    assert messages == []


@pytest.mark.parametrize("path", ["/api/v1/trace", "/healthz", "/nowhere", "/static/nothing.js"])
def test_a_body_is_rejected_by_its_declared_length(client, problem, settings, path):
    body = problem(client.post(path, json={"text": "a" * 5_000_000}), 413, "body-too-large")
    assert body["limit"] == settings.max_body_bytes
    assert body["actual"] > 5_000_000
