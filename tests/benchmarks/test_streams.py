"""How long 20 generated tokens take without and with 16 clients that trace, and in a mix of 64.

make bench
"""

import asyncio
import json
import time
from statistics import median

import pytest

from tests.benchmarks.test_throughput import FORMS, connected, get, post, sentences
from tests.server_process import serving

N_TOKENS = 20
N_ROUNDS = 5
TARGET_SECONDS = {0: 0.3, 16: 1.0, 64: 4.0}


def generate(text):
    body = json.dumps({"text": text, "n_tokens": N_TOKENS, "temperature": 0})
    head = "POST /api/v1/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


async def seconds_of_a_stream(address, text):
    """Return the seconds from the request to the last event."""
    async with connected(address) as client:
        began = time.perf_counter()
        client.writer.write(generate(text))
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await client.reader.readuntil(b"event: end")
        return time.perf_counter() - began


async def with_clients(address, n_clients):
    """Return the seconds of some streams, one after another, while others trace or cut texts."""
    texts = sentences()
    n_others = max(0, n_clients - 6) if n_clients >= 64 else n_clients

    async def trace():
        async with connected(address) as client:
            for text in texts:
                await client.ask(post(text, FORMS["JSON"]))

    async def stream():
        while True:
            await seconds_of_a_stream(address, "The dog")

    async def look():
        async with connected(address) as client:
            while True:
                await client.ask(get("/api/v1/models"))
                await asyncio.sleep(0.2)

    work = [trace() for _ in range(n_others)]
    if n_clients >= 64:
        work += [stream() for _ in range(4)] + [look()]
    others = [asyncio.ensure_future(each) for each in work]
    await asyncio.sleep(0.5)
    seconds = [await seconds_of_a_stream(address, "Once upon a time") for _ in range(N_ROUNDS)]
    for other in others:
        other.cancel()
    return seconds


@pytest.mark.parametrize("n_clients", TARGET_SECONDS)
def test_a_stream_has_its_turn_among_many_traces(table, n_clients):
    with serving(CACHE_BYTES=0) as server:
        seconds = asyncio.run(with_clients(server.address, n_clients))
    target = TARGET_SECONDS[n_clients]
    table.add(
        "Streams",
        f"{N_TOKENS} tokens with {n_clients} clients",
        f"median {median(seconds):.2f} s, longest {max(seconds):.2f} s",
        f"≤ {target:g} s",
        median(seconds) <= target,
    )
    assert median(seconds) < 10 * target
