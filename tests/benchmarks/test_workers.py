"""The throughput of several workers beside that of one, for 64 clients.

    make bench

Both servers run all the time and are measured in turns, so that a change of the machine's speed
meets both. Every sentence is sent once and the cache is off.
"""

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from statistics import median
from urllib.request import urlopen

import pytest

N_CLIENTS, N_REQUESTS, N_ROUNDS = 64, 640, 5
N_WORKERS = 2
TARGET, LEAST = 1.5, 1.0

SERVE = "from headlight.cli import app; app(['serve', '--port', '0', '--workers', '{}'])"
_numbers = itertools.count()


@contextmanager
def serving(n_workers):
    """The port of a server with that many workers, each of which is ready."""
    command = [sys.executable, "-c", SERVE.format(n_workers)]
    environment = {**os.environ, "HEADLIGHT_CACHE_BYTES": "0", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = next(line for line in process.stdout if "http://" in line)
            port = int(re.search(r":(\d+) ", line).group(1))
            until, n_ready = time.monotonic() + 120, 0
            while n_ready < 20 * n_workers:  # each request may meet another worker
                assert time.monotonic() < until, "the workers are not ready"
                n_ready = n_ready + 1 if is_ready(port) else 0
            yield port
        finally:
            process.terminate()
            process.wait(30)


def is_ready(port):
    try:
        return urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status == 200
    except OSError:
        time.sleep(0.1)
        return False


def request():
    text = f"Once upon a time there was a little light number {next(_numbers)} in the garden."
    body = json.dumps({"text": text})
    head = (
        "POST /api/v1/trace HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Accept: application/x-safetensors\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


async def client(port, n_requests):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    for _ in range(n_requests):
        writer.write(request())
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(int(re.search(rb"content-length: (\d+)", head).group(1)))
        assert head.startswith(b"HTTP/1.1 200"), body
    writer.close()


async def traces_a_second(port):
    began = time.perf_counter()
    await asyncio.gather(*(client(port, N_REQUESTS // N_CLIENTS) for _ in range(N_CLIENTS)))
    return N_REQUESTS / (time.perf_counter() - began)


def test_two_workers_answer_more_than_one(table):
    if (os.cpu_count() or 1) < N_WORKERS:
        pytest.skip("one core")
    with serving(1) as one, serving(N_WORKERS) as several:
        asyncio.run(traces_a_second(one))
        asyncio.run(traces_a_second(several))
        rounds = [
            (asyncio.run(traces_a_second(one)), asyncio.run(traces_a_second(several)))
            for _ in range(N_ROUNDS)
        ]
    ratio = median(more / few for few, more in rounds)
    table.add(
        "Workers",
        f"{N_CLIENTS} clients, {N_WORKERS} workers",
        f"{median(more for _, more in rounds):.0f} traces/s, {ratio:.2f} × one worker",
        f"≥ {TARGET} ×",
        ratio >= TARGET,
    )
    assert ratio > LEAST
