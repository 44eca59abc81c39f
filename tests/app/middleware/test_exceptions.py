"""Every error leaves as a problem."""

import asyncio

import pytest

from headlight.middleware import exceptions as layer
from headlight.middleware.exceptions import Errors
from headlight.problems import Problem


def test_an_unexpected_exception_is_a_problem_that_reveals_nothing(
    client_with, problem, monkeypatch, caplog
):
    client = client_with()

    def fail(*_):
        raise RuntimeError("the secret path /etc/shadow")

    monkeypatch.setattr(client.app.state.services.registry, "describe", fail)
    response = client.get("/api/v1/models/tiny")
    problem(response, 500, "internal-error")
    assert "secret" not in response.text
    assert "the secret path" in caplog.text
    assert client.get("/healthz").status_code == 200


def answer_of(application):
    """Return the types of the messages that leave the layer."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": "/", "headers": [], "method": "GET"}
    try:
        asyncio.run(Errors(application)(scope, None, send))
    finally:
        answer_of.sent = sent
    return sent


def test_an_exception_after_the_response_began_is_raised():
    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("too late")

    with pytest.raises(RuntimeError, match="too late"):
        answer_of(application)
    assert [message["type"] for message in answer_of.sent] == ["http.response.start"]


def test_a_request_that_is_cancelled_is_told_that_the_server_stops():
    async def application(scope, receive, send):
        raise asyncio.CancelledError

    first, body = answer_of(application)
    assert first["status"] == 503
    headers = dict(first["headers"])
    assert headers[b"retry-after"] == b"1"
    assert b"server-stopping" in body["body"]


@pytest.mark.parametrize("header", [(b"content-length", b"2"), (b"transfer-encoding", b"chunked")])
@pytest.mark.parametrize("is_raised", [True, False])
def test_a_rejected_body_is_read_to_its_end_before_the_answer(is_raised, header):
    """An unread body would reset the connection, and a proxy would lose the answer."""
    left = [{"type": "http.request", "body": b"{", "more_body": True}]
    left.append({"type": "http.request", "body": b"}", "more_body": False})
    sent = []

    async def application(scope, receive, send):
        if is_raised:
            raise Problem(401, "key-missing", "this needs a key")
        await send({"type": "http.response.start", "status": 429, "headers": []})

    async def receive():
        return left.pop(0)

    async def send(message):
        sent.append((message["type"], len(left)))

    scope = {"type": "http", "path": "/", "headers": [header], "method": "POST"}
    asyncio.run(Errors(application)(scope, receive, send))
    assert sent == [("http.response.start", 0), ("http.response.body", 0)]


def test_a_rejected_body_that_does_not_arrive_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(layer, "DISCARD_SECONDS", 0.01)
    sent = []

    async def application(scope, receive, send):
        raise Problem(401, "key-missing", "this needs a key")

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message["type"])

    headers = [(b"content-length", b"2")]
    scope = {"type": "http", "path": "/", "headers": headers, "method": "POST"}
    asyncio.run(Errors(application)(scope, receive, send))
    assert sent == ["http.response.start", "http.response.body"]
