"""The layers in Ray's proxy: a request whose replica died is sent again."""

import asyncio
import json

import pytest

from headlight.cluster import proxy
from headlight.cluster.proxy import HOLDER, Holders, Retries

OK = [
    {"type": "http.response.start", "status": 200, "headers": []},
    {"type": "http.response.body", "body": b"fine"},
]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(proxy, "PAUSE_SECONDS", 0)


class Replicas:
    """The inner application: each try reads the request, and sends the messages of its turn."""

    def __init__(self, *turns):
        self.turns = list(turns)
        self.bodies = []

    async def __call__(self, scope, receive, send):
        body, is_more = b"", True
        while is_more:
            message = await receive()
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
        self.bodies.append(body)
        for message in self.turns.pop(0):
            await send(message)


def ask(layer, parts=(b"ab", b"c"), **scope):
    """Send a request in parts through a layer; return the messages of the answer."""
    messages = [
        {"type": "http.request", "body": part, "more_body": number < len(parts) - 1}
        for number, part in enumerate(parts)
    ]
    answer = []

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message):
        answer.append(message)

    asyncio.run(layer({"type": "http", "path": "/", "headers": [], **scope}, receive, send))
    return answer


def test_a_request_that_got_no_answer_is_sent_again_with_its_body():
    replicas = Replicas([], OK)
    assert ask(Retries(replicas)) == OK
    assert replicas.bodies == [b"abc", b"abc"]


def test_an_answer_without_its_body_is_asked_for_again():
    replicas = Replicas(OK[:1], OK)
    assert ask(Retries(replicas)) == OK


def test_an_answer_that_has_begun_is_not_repeated():
    begun = [OK[0], {"type": "http.response.body", "body": b"event", "more_body": True}]
    replicas = Replicas(begun, OK)
    assert ask(Retries(replicas)) == begun
    assert len(replicas.bodies) == 1


def test_after_three_tries_the_answer_is_503_with_a_problem():
    replicas = Replicas([], [], [])
    start, body = ask(Retries(replicas))
    assert start["status"] == 503
    assert (b"retry-after", b"1") in start["headers"]
    assert json.loads(body["body"])["type"] == "urn:headlight:problem:replica-lost"
    assert len(replicas.bodies) == 3


def test_a_body_too_long_to_keep_is_sent_once(monkeypatch):
    monkeypatch.setattr(proxy, "MOST_BYTES", 1)
    replicas = Replicas([])
    start, _ = ask(Retries(replicas))
    assert start["status"] == 503
    assert replicas.bodies == [b"abc"]


class Seen:
    """An inner application that keeps the headers that it was sent."""

    async def __call__(self, scope, receive, send):
        self.headers = scope["headers"]


def test_only_the_hub_names_the_replica_of_a_kept_trace(monkeypatch):
    async def holder(self, trace_id):
        return f"holder of {trace_id[:2]}"

    monkeypatch.setattr(Holders, "_holder", holder)
    seen = Seen()
    trace = f"/api/v1/traces/{'ab' * 16}"
    forged = [(b"Serve_Multiplexed_Model_Id", b"mine"), (b"accept", b"*/*")]
    for path in (trace, f"{trace}/tile"):
        ask(Holders(seen), path=path, headers=forged)
        assert seen.headers == [(b"accept", b"*/*"), (HOLDER, b"holder of ab")]
    ask(Holders(seen), path="/api/v1/trace", headers=forged)
    assert seen.headers == [(b"accept", b"*/*")]
