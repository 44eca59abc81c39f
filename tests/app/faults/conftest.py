"""Send bytes to a server over a real socket exactly as given, and check the answer."""

import json
import logging
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from http.client import BadStatusLine, HTTPResponse
from urllib.parse import urlsplit

import httpx
import jsonschema_rs
import pytest

# The longest problem document: a sentence about the mistake needs no more.
MAX_PROBLEM_BYTES = 4_096
MAX_REPEATED = 120
# Nothing here is slow; the time limit is for a busy machine.
PATIENCE = 20.0


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        return json.loads(self.body)


class Connection:
    """A connection to a server."""

    def __init__(self, url):
        address = urlsplit(url)
        self.socket = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)

    def send(self, data):
        with suppress(BrokenPipeError, ConnectionResetError):  # refused: nobody reads it to its end
            self.socket.sendall(data)

    def read_reply(self, *, to_head=False):
        """Return the next final answer; None: the connection ended without one."""
        reply = HTTPResponse(self.socket, method="HEAD" if to_head else "POST")
        try:
            reply.begin()
        except (ConnectionError, BadStatusLine):
            return None
        headers = {name.lower(): value for name, value in reply.getheaders()}
        body = b""
        with suppress(ConnectionResetError):  # the end of a body without a length
            while piece := reply.read1():
                body += piece
        return Reply(reply.status, headers, body)

    def is_closed(self):
        """Return True if the server ends the connection, now or soon."""
        with suppress(ConnectionResetError):
            return not self.socket.recv(1)
        return True


@pytest.fixture
def connect(server):
    """Return a function that opens connections to the server, and closes them after the test."""
    opened: list[Connection] = []

    def open_connection():
        opened.append(Connection(server.url))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.socket.close()


@pytest.fixture
def exchange(connect):
    """Return a function that sends bytes, whole or in pieces, and gives the answer."""

    def send(pieces, *, ends=False, to_head=False):
        connection = connect()
        for piece in [pieces] if isinstance(pieces, bytes) else pieces:
            connection.send(piece)
        if ends:
            connection.socket.shutdown(socket.SHUT_WR)
        return connection.read_reply(to_head=to_head)

    return send


@pytest.fixture(scope="session")
def problem_schema(server):
    """Return the schema of errors, as the server publishes it."""
    document = httpx.get(f"{server.url}/openapi.json").json()
    post = document["paths"]["/api/v1/tokenize"]["post"]
    schema = post["responses"]["422"]["content"]["application/problem+json"]["schema"]
    return jsonschema_rs.validator_for({**document, **schema})


@pytest.fixture
def assert_problem(problem_schema):
    """Return a function that checks that an answer is a valid problem."""

    def check(reply, sent=b""):
        assert reply is not None, "the connection ended without an answer"
        assert 400 <= reply.status < 500 or reply.status in (501, 505), reply
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.headers["x-content-type-options"] == "nosniff"
        body = reply.json()
        problem_schema.validate(body)
        assert re.fullmatch(r"urn:headlight:problem:[a-z]+(-[a-z]+)*", body["type"]), body["type"]
        assert body["status"] == reply.status
        assert len(reply.body) <= MAX_PROBLEM_BYTES
        for start in range(0, len(sent) - MAX_REPEATED, MAX_REPEATED // 2):
            assert sent[start : start + MAX_REPEATED] not in reply.body, "it repeats what was sent"
        return body

    return check


@pytest.fixture(scope="session")
def mistakes(server):
    """Yield the errors that the server has logged so far."""
    records: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record):
            records.append(record)

    loggers = [logging.getLogger(name) for name in ("", "uvicorn", "uvicorn.error", "asyncio")]
    keeper = Keeper(logging.ERROR)
    for logger in loggers:
        logger.addHandler(keeper)
    yield records
    for logger in loggers:
        logger.removeHandler(keeper)


@pytest.fixture(autouse=True)
def no_mistakes(mistakes):
    """Check after each test that the server has logged no error."""
    mistakes.clear()
    yield
    assert [record.getMessage() for record in mistakes] == []
