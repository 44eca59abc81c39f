"""HEAD, compression and entity tags of short text responses: cards, limits, OpenAPI, pages.

A browser keeps such a text and revalidates it: 304 is all that is sent if its tag still holds. The
tag is a hash of the bytes as sent, so each content coding has its own. Traces and files set their
coding and tag themselves; event streams are never buffered.

Starlette tags only files. Its GZipMiddleware compresses for a client that sends `gzip;q=0`, and
starlette-compress compresses event streams, and responses whose route negotiated their tag.
"""

import asyncio

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.addresses import PROBES, path_of
from headlight.problems import Problem
from headlight.serialization.accept import negotiate_coding
from headlight.serialization.compression import Coding, compressed
from headlight.serialization.entity_tags import content_tag, is_known

COMPRESSED_TYPES = frozenset({"application/json", "text/html", "text/plain"})
TAGGED_TYPES = frozenset({"application/json", "text/html"})

QUICK_BYTES = 2**16
"""Compressed on the event loop, in less than a millisecond; more goes to a thread."""

_OF_CONTENT = "content-length", "content-encoding", "content-type"


class ConditionalGet:
    """Answers HEAD as GET without its body; compresses and tags text responses.

    https://www.rfc-editor.org/rfc/rfc9110#name-conditional-requests
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] != "HEAD":
            await self.app(scope, receive, _BufferedResponse(scope, send).send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # The scope is not copied: outer layers read from it which route answered.
        scope["method"] = "GET"
        try:
            await self.app(scope, receive, _BufferedResponse(scope, send_without_body).send)
        finally:
            scope["method"] = "HEAD"


class _BufferedResponse:
    """Holds the start of a response until its body comes, which may be changed if it is whole."""

    def __init__(self, scope: Scope, forward: Send) -> None:
        self.request = Headers(scope=scope)
        # A probe asks how the server is now: nothing of it may be kept.
        self.may_be_kept = scope["method"] == "GET" and path_of(scope) not in PROBES
        self.forward = forward
        self.start: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_open(Headers(raw=message["headers"])):
            self.start = message
            return
        if self.start is not None:
            start, self.start = self.start, None
            if not message.get("more_body") and start["status"] == 200:
                message = await self._finish(start, message)
            await self.forward(start)
        await self.forward(message)

    async def _finish(self, start: Message, body: Message) -> Message:
        headers = MutableHeaders(raw=start["headers"])
        content = await self._compress(body.get("body", b""), headers)
        if self.may_be_kept and _is_taggable(headers):
            tag = content_tag(content)
            headers["ETag"] = tag
            headers["Cache-Control"] = "no-cache"
            if is_known(tag, self.request.getlist("if-none-match")):
                start["status"], content = 304, b""
                for name in _OF_CONTENT:
                    del headers[name]
        return {**body, "body": content}

    async def _compress(self, content: bytes, headers: MutableHeaders) -> bytes:
        headers.add_vary_header("Accept-Encoding")
        try:
            coding = negotiate_coding(self.request, len(content))
        except Problem:
            return content  # the client accepts no coding; the text itself says more than 406
        if coding == "identity":
            return content
        if len(content) <= QUICK_BYTES:
            content = _coded(content, coding)
        else:
            content = await asyncio.to_thread(_coded, content, coding)
        headers["Content-Encoding"] = coding
        headers["Content-Length"] = str(len(content))
        return content


def _is_open(headers: Headers) -> bool:
    """Return True for a text whose route set no Content-Encoding, ETag or Vary on the coding."""
    is_decided = "content-encoding" in headers or "etag" in headers
    is_decided |= "accept-encoding" in headers.get("vary", "").lower()
    return _media_type(headers) in COMPRESSED_TYPES and not is_decided


def _is_taggable(headers: Headers) -> bool:
    is_revalidated = headers.get("cache-control", "no-cache") == "no-cache"
    return is_revalidated and _media_type(headers) in TAGGED_TYPES


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0]


def _coded(content: bytes, coding: Coding) -> bytes:
    return b"".join(compressed([content], coding))
