"""Layers in Ray's HTTP proxy: send a request to the replica that has its trace, and try again.

Ray's proxy answers 500 without a body if a replica dies while it computes. Every request of the API
may be repeated, so the request is sent once more, to another replica; if that fails too, the answer
is 503. An answer that has begun, such as a stream, cannot be repeated: its connection is closed.

`RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH` names `layers` to the proxies.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.addresses import path_of

CALLBACK = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"
LAYERS = "headlight.cluster.proxy.layers"
N_TRIES = 3
PAUSE_SECONDS = 0.2
MOST_BYTES = 2**20
"""A longer body is not kept, and so not sent again."""

HOLDER = b"serve_multiplexed_model_id"
"""The header by which Ray's router finds the replica that has what a request is about."""

_TRACE = re.compile(r"/api/v1/traces/([0-9a-f]{32})(?:/tile)?")


def layers() -> list[Middleware]:
    """Return the layers, for Ray's proxy."""
    return [Middleware(Retries), Middleware(Holders)]


class Retries:
    """Sends a request again if the replica that computed it died."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, up to three times."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, is_whole = await _read(receive)
        for number in range(N_TRIES if is_whole else 1):
            if number:
                await asyncio.sleep(PAUSE_SECONDS * number)
            answer = _Answer(send)
            await self.app(dict(scope), _Replay(body, receive, is_whole), answer)
            if answer.is_begun or answer.is_left:
                return
        await _unavailable(send)


class _Answer:
    """Sends what the replica sends; the start waits for the first part of the body."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.start: Message | None = None
        self.is_begun = False
        self.is_left = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.start = message
            return
        if self.start is not None:
            self.is_begun = True
            await self.send(self.start)
            self.start = None
        await self.send(message)


class _Replay:
    """Gives the body that was read, and then what the client sends."""

    def __init__(self, body: list[Message], receive: Receive, is_whole: bool) -> None:
        self.left = list(body)
        self.receive = receive
        self.is_whole = is_whole

    async def __call__(self) -> Message:
        if self.left:
            return self.left.pop(0)
        return await self.receive()


async def _read(receive: Receive) -> tuple[list[Message], bool]:
    """Read a body; the value is its messages, and whether they are all and few enough to keep."""
    messages, n_bytes = [], 0
    while True:
        message = await receive()
        messages.append(message)
        n_bytes += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return messages, message["type"] == "http.request"
        if n_bytes > MOST_BYTES:
            return messages, False


async def _unavailable(send: Send) -> None:
    detail = "the replica that computed this ended; try again"
    problem = {
        "type": "urn:headlight:problem:replica-lost",
        "title": "Replica lost",
        "status": 503,
        "detail": detail,
    }
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"retry-after", b"1"),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})


class Holders:
    """Names the replica that has a kept trace, for Ray's router."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._hub: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; only one for a kept trace asks the hub."""
        if scope["type"] == "http":
            # A client does not choose its replica.
            headers = [pair for pair in scope["headers"] if pair[0].lower() != HOLDER]
            match = _TRACE.fullmatch(path_of(scope))
            if match and (replica := await self._holder(match[1])):
                headers.append((HOLDER, replica.encode()))
            scope = {**scope, "headers": headers}
        await self.app(scope, receive, send)

    async def _holder(self, trace_id: str) -> str | None:
        import ray
        from ray.exceptions import RayError

        from headlight.cluster.hub import ANSWER_SECONDS, NAME, NAMESPACE

        try:
            if self._hub is None:
                self._hub = ray.get_actor(NAME, NAMESPACE)
            async with asyncio.timeout(ANSWER_SECONDS):
                holder: str | None = await self._hub.holder.remote(trace_id)
                return holder
        except (RayError, ValueError, TimeoutError):
            self._hub = None
            return None
