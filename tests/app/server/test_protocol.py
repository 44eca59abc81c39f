"""What is no HTTP is refused as everything else is: as a problem, counted, and logged once."""

import json
import logging
import re
import socket
import time

import httpx
import pytest

CHUNKED = (
    b"POST /api/v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: "
)
NOISE = b"\x00\x01\x02\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
UPGRADE = (
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
)


@pytest.fixture
def ask(server):
    """Sends bytes and gives all that comes back until the connection ends."""

    def ask(sent):
        url = httpx.URL(server.url)
        with socket.create_connection((url.host, url.port), timeout=15) as connection:
            connection.sendall(sent)
            return b"".join(iter(lambda: connection.recv(65_536), b""))

    return ask


@pytest.fixture
def log(caplog):
    """What is logged of requests, and of anything else where it is more than news."""
    caplog.set_level(logging.INFO)
    return lambda: [record for record in caplog.records if record.name != "httpx"]


def read(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), json.loads(body)


def comes_true(condition, seconds=10):
    until = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def counted(server, name, **labels):
    return server.services.metrics.registry.get_sample_value(f"headlight_{name}_total", labels) or 0


@pytest.mark.parametrize(
    ("sent", "line", "kind", "detail"),
    [
        (
            NOISE,
            "400 Bad Request",
            "malformed-request",
            "what was received is no request of HTTP/1.1: illegal request line",
        ),
        (
            b"GET / HTTP/1.1\r\n\r\n",
            "400 Bad Request",
            "malformed-request",
            "what was received is no request of HTTP/1.1: missing mandatory Host: header",
        ),
        (
            CHUNKED + b"gzip, chunked\r\n\r\n",
            "501 Not Implemented",
            "not-implemented",
            "a body is read as it is or in chunks, and in no other transfer coding; send it so",
        ),
        (
            PREFACE,
            "505 HTTP Version Not Supported",
            "version-not-supported",
            "the server speaks HTTP/1.1 and no other major version of HTTP; ask it in that",
        ),
    ],
    ids=["noise", "no host", "another coding", "HTTP/2"],
)
def test_a_refusal_is_whole(ask, sent, line, kind, detail):
    answer = ask(sent)
    status_line, problem = read(answer)
    assert status_line == f"HTTP/1.1 {line}"
    assert problem["type"] == f"urn:headlight:problem:{kind}"
    assert problem["detail"] == detail
    assert f"x-request-id: {problem['request_id']}".encode() in answer
    assert len(re.findall(rb"HTTP/1.1 \d", answer)) == 1, "one answer alone"


def test_a_refusal_is_counted_and_leaves_one_line_that_is_no_warning(server, ask, log):
    labels = {"route": "none", "method": "OTHER", "status": "400"}
    before = counted(server, "refused", kind="malformed-request")
    n_answers = counted(server, "requests", **labels)
    _, problem = read(ask(NOISE))
    assert counted(server, "refused", kind="malformed-request") == before + 1
    assert counted(server, "requests", **labels) == n_answers + 1
    [line] = [record for record in log() if record.name == "headlight.access"]
    assert (line.problem, line.status, line.levelname) == ("malformed-request", 400, "INFO")
    assert re.fullmatch("[0-9a-f]{16}", problem["request_id"])
    assert [record for record in log() if record.levelno > logging.INFO] == []


def test_a_body_that_turns_out_to_be_noise_is_one_exchange(server, ask, log):
    before = counted(server, "refused", kind="malformed-request")
    head = CHUNKED.replace(b"Host:", b"X-Request-ID: mine\r\nHost:")
    status_line, problem = read(ask(head + b"chunked\r\n\r\nzz\r\n"))
    assert status_line == "HTTP/1.1 400 Bad Request"
    assert problem["request_id"] == "mine"
    assert comes_true(log), "the application enters it, a moment later"
    assert counted(server, "refused", kind="malformed-request") == before + 1
    [line] = [record for record in log() if record.name == "headlight.access"]
    assert (line.route, line.status) == ("/api/v1/tokenize", 400)


def test_a_wish_for_websockets_is_no_news(ask, log):
    assert read(ask(UPGRADE)) == ("HTTP/1.1 200 OK", {"status": "ok"})
    assert [record.name for record in log()] == ["headlight.access"]


@pytest.mark.parametrize("pause", [0, 0.2], ids=["at once", "later"])
def test_a_chunk_that_says_it_is_too_long_is_not_waited_for(server, pause):
    url = httpx.URL(server.url)
    labels = {"route": "/api/v1/tokenize", "method": "POST", "status": "413"}
    before = counted(server, "requests", **labels)
    began = time.monotonic()
    with socket.create_connection((url.host, url.port), timeout=15) as connection:
        connection.sendall(CHUNKED + b"chunked\r\n\r\n")
        time.sleep(pause)
        connection.sendall(b"f" * 18 + b"\r\n")
        status_line, problem = read(b"".join(iter(lambda: connection.recv(65_536), b"")))
    assert time.monotonic() - began < server.services.settings.body_seconds / 2
    assert status_line.startswith("HTTP/1.1 413 ")
    assert problem["limit"] == server.services.settings.max_body_bytes
    assert comes_true(lambda: counted(server, "requests", **labels) == before + 1)


def test_a_chunk_of_what_a_body_may_take_is_read(server, ask):
    body = b'{"text": "a"}'.ljust(server.services.settings.max_body_bytes)
    sent = CHUNKED + b"chunked\r\nConnection: close\r\n\r\n"
    answer = ask(sent + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
    assert read(answer)[0] == "HTTP/1.1 200 OK"
