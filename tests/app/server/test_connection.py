"""Clients that send or read too slowly are cut off, and everything held for them is free again."""

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager, suppress

import httpx
import pytest

from headlight.server import protocol

HEAD = "POST /api/v1/{} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def strict(serving, settings):
    """A server without patience."""
    changed = {
        "header_seconds": 0.4,
        "body_seconds": 0.4,
        "keep_alive_seconds": 1,
        "stream_patience_seconds": 0.4,
        "least_read_rate": 1_000_000,
        "max_connections": 8,
    }
    with serving(settings.model_copy(update=changed)) as server:
        yield server


@pytest.fixture
def connect(strict):
    """Opens connections, and closes them after the test."""
    opened = []

    def make(receive_buffer=None):
        url = httpx.URL(strict.url)
        connection = socket.socket()
        opened.append(connection)
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(10)
        connection.connect((url.host, url.port))
        return connection

    yield make
    for connection in opened:
        connection.close()


def get(path, headers=""):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()


def read_all(connection):
    """Everything until the server closes the connection."""
    parts = []
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def problem_in(answer, status, kind):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), head
    assert b"application/problem+json" in head
    assert b"content-security-policy" in head.lower()
    document = json.loads(body)
    assert document["type"].endswith(f":{kind}")
    return document


def dribble(connection, data, seconds=0.1):
    """Send a byte at a time until nobody listens any more."""
    with suppress(ConnectionError):
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(seconds)


@contextmanager
def thread_held(engine):
    """Keeps the inference thread busy inside the block."""
    has_begun, may_end = threading.Event(), threading.Event()

    def hold():
        has_begun.set()
        may_end.wait(20)

    holder = threading.Thread(target=lambda: asyncio.run(engine.run(hold)))
    holder.start()
    has_begun.wait(20)
    try:
        yield
    finally:
        may_end.set()
        holder.join()


def is_serving(server):
    return httpx.get(f"{server.url}/healthz").status_code == 200


@pytest.fixture
def refused_early(settings, connect):
    """A connection on which a body was refused before the rest of it was sent."""
    connection, size = connect(), settings.max_body_bytes + 1
    connection.sendall(f"{HEAD.format('trace')}Content-Length: {size}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(65536)
    problem_in(answer, 413, "body-too-large")
    connection.sendall(b" " * size)
    return connection


def test_the_rest_of_a_body_that_was_refused_is_no_head_that_is_late(refused_early):
    time.sleep(0.7)
    refused_early.sendall(get("/healthz"))
    assert refused_early.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_connection_is_idle_from_the_rest_of_a_refused_body_on(refused_early):
    began = time.monotonic()
    assert read_all(refused_early) == b""
    assert 0.5 < time.monotonic() - began < 10


def test_a_head_that_dribbles_is_refused(strict, connect):
    connection = connect()
    dribble(connection, b"GET / HTTP/1.1")
    document = problem_in(read_all(connection), 408, "headers-too-slow")
    assert document["limit"] == 0.4
    assert is_serving(strict)


def test_a_connection_that_says_nothing_is_closed_without_a_word(connect):
    assert read_all(connect()) == b""


def test_a_second_head_has_no_more_time_than_the_first(connect):
    connection = connect()
    assert answers(connection)
    dribble(connection, b"GET / HTTP/1.1")
    problem_in(read_all(connection), 408, "headers-too-slow")


def test_a_connection_without_requests_is_closed_after_a_while(connect):
    connection = connect()
    connection.sendall(get("/healthz"))
    began = time.monotonic()
    assert read_all(connection).startswith(b"HTTP/1.1 200")
    assert time.monotonic() - began > 0.8, "it is kept for keep_alive_seconds"


@pytest.mark.parametrize("path", ["trace", "tokenize", "generate"])
def test_a_body_that_dribbles_is_refused(strict, connect, path):
    connection = connect()
    connection.sendall((HEAD.format(path) + "Content-Length: 1000\r\n\r\n").encode())
    dribble(connection, b'{"text": "aaaa')
    problem_in(read_all(connection), 408, "body-too-slow")
    assert is_serving(strict)


def test_so_is_one_that_comes_in_chunks_without_end(connect):
    connection = connect()
    connection.sendall((HEAD.format("trace") + "Transfer-Encoding: chunked\r\n\r\n").encode())
    dribble(connection, b"1\r\n \r\n" * 3)
    problem_in(read_all(connection), 408, "body-too-slow")


def test_a_body_that_takes_its_time_within_the_limit_is_read(connect):
    body = json.dumps({"text": "the cat"}).encode()
    connection = connect()
    head = HEAD.format("tokenize") + f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode())
    time.sleep(0.1)
    connection.sendall(body[:5])
    time.sleep(0.1)
    connection.sendall(body[5:])
    assert read_all(connection).startswith(b"HTTP/1.1 200")


def test_a_body_nobody_reads_is_refused_as_any_other_while_an_answer_is_made(strict, connect):
    connection = connect()
    with thread_held(strict.services.engine):
        path = "/api/v1/positional?scheme=sinusoidal&length=4&width=4"
        connection.sendall(get(path, "Content-Length: 5\r\n"))
        problem_in(read_all(connection), 408, "body-too-slow")


def test_a_request_that_came_before_its_turn_has_all_its_time(serving, settings, monkeypatch):
    monkeypatch.setattr(protocol, "_LINGER_SECONDS", 0.1)
    body = json.dumps({"text": "the cat"}).encode()
    head = HEAD.format("tokenize") + f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    with serving(settings) as server:
        url = httpx.URL(server.url)
        with socket.create_connection((url.host, url.port), timeout=10) as connection:
            connection.sendall(get("/healthz") + head.encode() + body[:5])
            time.sleep(0.5)
            connection.sendall(body[5:])
            assert read_all(connection).count(b"HTTP/1.1 200") == 2


@pytest.mark.parametrize("closing", ["", "Connection: close\r\n"])
def test_who_does_not_read_a_large_answer_is_cut_off(strict, connect, closing):
    connection = connect(receive_buffer=4096)
    connection.sendall(get("/static/plotly.min.js", closing))
    wait_for(lambda: open_requests(strict) == 0)
    time.sleep(1.2)
    received = read_all(connection)
    assert received.startswith(b"HTTP/1.1 200")
    assert len(received) < 4_000_000, "the rest was given up, and is in no memory any more"
    assert is_serving(strict)


def test_who_reads_slowly_but_steadily_gets_all_of_it(serving, settings):
    slow = settings.model_copy(update={"stream_patience_seconds": 0.5, "least_read_rate": 1_000})
    with serving(slow) as server:
        url = httpx.URL(server.url)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.settimeout(20)
            connection.connect((url.host, url.port))
            connection.sendall(get("/static/plotly.min.js", "Connection: close\r\n"))
            received = 0
            while part := connection.recv(65536):
                received += len(part)
                time.sleep(0.01)
    assert received > 4_000_000


def test_one_connection_too_many_is_told_so(strict, connect):
    kept = [connect() for _ in range(8)]
    assert all(answers(connection) for connection in kept)
    answer = read_all(connect())
    document = problem_in(answer, 503, "too-many-connections")
    assert document["limit"] == 8
    assert b"retry-after: 1" in answer.lower()
    kept.pop().close()
    wait_for(lambda: answers(connect()))


def answers(connection):
    with suppress(ConnectionError):
        connection.sendall(get("/healthz"))
        received = b""
        while not received.endswith(b'"ok"}') and (part := connection.recv(65536)):
            received += part
        return received.startswith(b"HTTP/1.1 200")
    return False


def open_requests(server):
    registry = server.services.metrics.registry
    return registry.get_sample_value("headlight_requests_in_flight")


def wait_for(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
