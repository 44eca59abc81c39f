"""A large answer leaves in pieces and arrives whole."""

import asyncio

import httpx
import pytest

from headlight.serialization.pieced_response import PIECE_BYTES, UNREAD_BYTES, ChunkedResponse
from headlight.serialization.sending import Outgoing


def sent(response):
    messages = []

    async def send(message):
        messages.append(message)

    asyncio.run(response({"type": "http"}, None, send))
    return messages


@pytest.mark.parametrize(
    ("n_bytes", "n_pieces"),
    [(0, 1), (1, 1), (UNREAD_BYTES, 1), (PIECE_BYTES, 2), (PIECE_BYTES + 1, 3), (2**20, 5)],
)
def test_pieces_follow_each_other_and_the_last_one_says_so(n_bytes, n_pieces):
    content = bytes(range(256)) * (n_bytes // 256) + b"x" * (n_bytes % 256)
    outgoing = Outgoing(limit=2**21)
    reservation = outgoing.reserve(n_bytes)
    start, *pieces = sent(ChunkedResponse(content, "application/json", {}, reservation))
    assert outgoing.n_bytes == 0
    assert (start["status"], len(pieces)) == (200, n_pieces)
    assert (b"content-length", str(n_bytes).encode()) in start["headers"]
    assert b"".join(piece["body"] for piece in pieces) == content
    assert [piece["more_body"] for piece in pieces] == [True] * (n_pieces - 1) + [False]
    assert n_bytes <= UNREAD_BYTES or pieces[-1]["body"] == b"", "which waits for what is unread"


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("POST", "trace", {"json": {"text": "the cat sat " * 8, "capture": ["*"]}}),
        ("GET", "positional", {"params": {"scheme": "sinusoidal", "length": 900, "width": 64}}),
    ],
)
def test_no_route_hands_over_a_large_answer_whole(client, method, path, asked):
    largest = 0

    async def application(scope, receive, send):
        async def send_measured(message):
            nonlocal largest
            largest = max(largest, len(message.get("body", b"")))
            await send(message)

        await client.app(scope, receive, send_measured)

    async def ask():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
            headers = {"accept-encoding": "identity"}
            return await asking.request(method, f"/api/v1/{path}", headers=headers, **asked)

    answer = asyncio.run(ask())
    assert len(answer.content) > PIECE_BYTES
    assert answer.json()["tensors"]
    assert largest <= PIECE_BYTES


def test_a_large_trace_arrives_whole_over_a_real_connection(server):
    asked = {"text": "the cat sat " * 8, "capture": ["*"], "analyses": []}
    answer = httpx.post(f"{server.url}/api/v1/trace", json=asked, timeout=30)
    assert len(answer.content) > PIECE_BYTES
    assert answer.json()["tensors"]
