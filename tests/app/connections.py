"""Requests as bytes over connections that a test may cut, and waiting for what a server does."""

import json
import socket
import time

import httpx


def connect(server):
    url = httpx.URL(server.url)
    return socket.create_connection((url.host, url.port), timeout=10)


def raw_post(path, **members):
    """Return a request with a JSON body as bytes."""
    body = json.dumps(members).encode()
    head = (
        f"POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
