"""Short texts that routes make anew each time, compressed on their way out: cards, OpenAPI, pages.

Traces and files choose their coding themselves. What is sent piece by piece, as events are, is
never touched: a compressor would keep the last event to itself.
"""

import asyncio

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.errors import Problem
from headlight.middleware.held_text import HeldText
from headlight.serialization.compression import compressed
from headlight.serialization.formats import Coding
from headlight.serialization.negotiation import negotiate_coding

TYPES = frozenset({"application/json", "text/html", "text/plain"})

QUICK_BYTES = 2**16
"""Compressed where it is, in less than a millisecond; more goes to a thread."""


class CompressedTexts:
    """Compresses answers that are one text and have said nothing about codings themselves."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and compress its answer."""
        if scope["type"] == "http":
            send = _Outlet(Headers(scope=scope), send).send
        await self.app(scope, receive, send)


class _Outlet(HeldText):
    def __init__(self, wanted: Headers, forward: Send) -> None:
        super().__init__(forward)
        self.wanted = wanted

    def is_open(self, start: Message) -> bool:
        return _is_open(start)

    async def finish(self, start: Message, body: Message) -> Message:
        content: bytes = body.get("body", b"")
        headers = MutableHeaders(raw=start["headers"])
        headers.add_vary_header("Accept-Encoding")
        coding = self._coding_for(len(content))
        if coding == "identity":
            return body
        if len(content) <= QUICK_BYTES:
            content = _coded(content, coding)
        else:
            content = await asyncio.to_thread(_coded, content, coding)
        headers["Content-Encoding"] = coding
        headers["Content-Length"] = str(len(content))
        start["headers"] = headers.raw
        return {**body, "body": content}

    def _coding_for(self, n_bytes: int) -> Coding:
        try:
            return negotiate_coding(self.wanted, n_bytes)
        except Problem:
            return "identity"  # it is here, and says more than that it cannot be had


def _is_open(start: Message) -> bool:
    """Whether nobody has decided yet how this answer is coded."""
    headers = Headers(raw=start["headers"])
    is_decided = "content-encoding" in headers or "etag" in headers
    is_decided |= "accept-encoding" in headers.get("vary", "").lower()
    media_type = headers.get("content-type", "").partition(";")[0]
    return start["status"] == 200 and media_type in TYPES and not is_decided


def _coded(content: bytes, coding: Coding) -> bytes:
    return b"".join(compressed([content], coding))
