"""Both clients behind one interface, so that each test runs with both."""

import asyncio
import inspect
from functools import partial
from typing import Any

import httpx
import pytest

from headlight.client import AsyncClient, Client


class Waiting:
    """An `AsyncClient` that a test can use as a `Client`: each call is run to its end."""

    def __init__(self, *args, **options):
        self.client = AsyncClient(*args, **options)
        self.loop = asyncio.new_event_loop()

    def __getattr__(self, name):
        return partial(self._call, getattr(self.client, name))

    def _call(self, method, *args, **options):
        answer = method(*args, **options)
        return self._run(answer) if inspect.isawaitable(answer) else self._each(answer)

    def _each(self, events):
        try:
            while True:
                try:
                    yield self._run(anext(events))
                except StopAsyncIteration:
                    return
        finally:
            self._run(events.aclose())

    def _run(self, waited):
        return self.loop.run_until_complete(waited)

    def close(self):
        self._run(self.client.close())
        self._run(self.loop.shutdown_asyncgens())
        self.loop.close()


@pytest.fixture(params=[Client, Waiting], ids=["client", "async_client"])
def make(request):
    """Return a function that makes clients of either kind."""
    made: list[Any] = []

    def make_one(*args, **options):
        made.append(request.param(*args, **options))
        return made[-1]

    yield make_one
    for client in made:
        client.close()


@pytest.fixture
def headlight(make, server):
    """Return a client of a real server."""
    return make(server.url)


@pytest.fixture
def answering(make):
    """Return a function that makes clients of a server that gives these answers in turn."""

    def make_one(*answers, **options):
        left = list(answers)
        asked: list[httpx.Request] = []

        def answer(request):
            asked.append(request)
            next_answer = left.pop(0)
            if isinstance(next_answer, Exception):
                raise next_answer
            return next_answer

        client = make("http://headlight.test", transport=httpx.MockTransport(answer), **options)
        return client, asked

    return make_one
