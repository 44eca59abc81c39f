"""Entity tags for texts that change seldom: cards, limits, the API's description, the page.

A browser keeps them and asks each time whether they are still right; where they are, 304 is all
that is sent. A tag is a hash of the bytes as they are sent, so each content coding has its own.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.middleware.held_text import HeldText
from headlight.middleware.trusted_hosts import TrustedHosts
from headlight.serialization.entity_tags import content_tag, is_known

TYPES = frozenset({"application/json", "text/html"})

_OF_A_BODY = "content-length", "content-encoding", "content-type"


class RememberedTexts:
    """Tags answers that are one text and have said nothing about being kept themselves."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; send its answer with a tag, or 304 where the tag is known."""
        if _may_be_kept(scope):
            send = _Outlet(Headers(scope=scope).getlist("if-none-match"), send).send
        await self.app(scope, receive, send)


class _Outlet(HeldText):
    def __init__(self, known: list[str], forward: Send) -> None:
        super().__init__(forward)
        self.known = known

    def is_open(self, start: Message) -> bool:
        return _is_open(start)

    async def finish(self, start: Message, body: Message) -> Message:
        tag = content_tag(body.get("body", b""))
        headers = MutableHeaders(raw=start["headers"])
        headers["ETag"] = tag
        headers["Cache-Control"] = "no-cache"
        is_here = is_known(tag, self.known)
        if is_here:
            start["status"] = 304
            for name in _OF_A_BODY:
                del headers[name]
        start["headers"] = headers.raw
        return {**body, "body": b""} if is_here else body


def _may_be_kept(scope: Scope) -> bool:
    """Whether somebody reads; how the server is just now, which probes ask, is never kept."""
    is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
    return is_read and scope["path"] not in TrustedHosts.PROBES


def _is_open(start: Message) -> bool:
    """Whether nobody has decided yet how this answer is kept."""
    headers = Headers(raw=start["headers"])
    is_decided = "etag" in headers or headers.get("cache-control", "no-cache") != "no-cache"
    media_type = headers.get("content-type", "").partition(";")[0]
    return start["status"] == 200 and media_type in TYPES and not is_decided
