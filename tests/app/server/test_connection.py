"""A server that stops answers the requests that have arrived, and announces that it closes."""

import asyncio
import socket
import threading
from contextlib import contextmanager

import pytest
import uvicorn
from fastapi import FastAPI

from headlight.server import config_of, listen
from headlight.settings import Settings
from tests.app.connections import wait_for

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW = REQUEST.replace(b"GET /", b"GET /slow")


class Stoppable:
    """A server whose connections a test stops, as uvicorn does when it ends."""

    def __init__(self, address):
        self.address = address
        self.may_end = asyncio.Event()
        self.is_slow = threading.Event()
        self.app = FastAPI()
        self.loop = None

        @self.app.get("/")
        async def quick() -> str:
            self.loop = asyncio.get_running_loop()
            return "quick"

        @self.app.get("/slow")
        async def slow() -> str:
            self.is_slow.set()
            await self.may_end.wait()
            return "slow"

        settings = Settings(shutdown_seconds=20)
        self.server = uvicorn.Server(config_of(self.app, settings))

    @contextmanager
    def client(self):
        """Yield a connection on which a request was answered."""
        with socket.create_connection(self.address, timeout=20) as client:
            client.sendall(REQUEST)
            assert b"close" not in answer(client)
            yield client

    def stop_connections(self, first=lambda: None):
        """Call `first` on the event loop, and stop all connections before it reads again."""
        is_done = threading.Event()

        def stop():
            first()
            for connection in list(self.server.server_state.connections):
                connection.shutdown()
            is_done.set()

        self.loop.call_soon_threadsafe(stop)
        assert is_done.wait(20)


@pytest.fixture
def stoppable():
    with listen("127.0.0.1", 0) as listener:
        holder = Stoppable(listener.getsockname())
        thread = threading.Thread(target=holder.server.run, kwargs={"sockets": [listener]})
        thread.start()
        wait_for(lambda: holder.server.started)
        yield holder
        if holder.loop:
            holder.loop.call_soon_threadsafe(holder.may_end.set)
        holder.server.should_exit = True
        thread.join(60)


def answer(client):
    """Return head and body of one response of a few bytes, or fewer if it is cut."""
    got = b""
    while not got.endswith((b'"quick"', b'"slow"')) and (piece := client.recv(4096)):
        got += piece
    return got


def test_a_request_that_was_not_read_yet_is_answered(stoppable):
    with stoppable.client() as client:
        stoppable.stop_connections(first=lambda: client.sendall(REQUEST))
        said = answer(client)
        assert said.endswith(b'"quick"')
        assert said.lower().count(b"connection: close") == 1
        assert client.recv(4096) == b""


def test_an_open_response_ends_and_says_that_its_connection_is_closed(stoppable):
    with stoppable.client() as client:
        client.sendall(SLOW)
        assert stoppable.is_slow.wait(20)
        stoppable.stop_connections()
        stoppable.loop.call_soon_threadsafe(stoppable.may_end.set)
        said = answer(client)
        assert said.endswith(b'"slow"')
        assert said.lower().count(b"connection: close") == 1
        assert client.recv(4096) == b""


def test_an_idle_connection_is_closed(stoppable):
    with stoppable.client() as client:
        stoppable.stop_connections()
        assert client.recv(4096) == b""
