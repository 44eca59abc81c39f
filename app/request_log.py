"""Request ids, the access log and request counters: the outermost middleware.

The log keeps of a text only its length, and a hash under a key that dies with the process: equal
texts have equal hashes, and a guessed text cannot be confirmed.

asgi-correlation-id was considered for the ids: it logs a warning for every malformed id a client
sends, and the log needs a context of its own as well.
"""

import hashlib
import logging
import random
import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.metrics import NO_ROUTE, Metrics, known_method

logger = logging.getLogger("headlight.access")

CLIENT_LEFT = 499
"""The status in log and metrics of a request whose client left before it was answered."""

_KEY = secrets.token_bytes(32)

# An id is not a secret, and asking the system for each gives the interpreter away.
_ids = random.Random(secrets.randbits(128))  # nosec B311
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """A request that is being answered, as the log, the metrics and problems see it."""

    id: str
    method: str
    began: float = field(default_factory=perf_counter)
    status: int = CLIENT_LEFT
    sent_bytes: int = 0
    problem: str | None = None
    text_characters: int | None = None
    text_hash: str | None = None

    def note_text(self, text: str) -> None:
        """Note that the request brought a text; the text itself is not kept."""
        self.text_characters = len(text)
        self.text_hash = hash_of(text)


current: ContextVar[RequestContext | None] = ContextVar("request", default=None)
"""The request that the running code answers, if any."""


class Stoppable(Protocol):
    """Knows whether the server is stopping."""

    is_stopping: bool


class RequestLog:
    """Gives each request an id, counts it, and logs one line when it is answered.

    If the server is stopping, responses close their connections.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, streams: Stoppable) -> None:
        self.app = app
        self.metrics = metrics
        self.streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; note its response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = RequestContext(id=_request_id(scope), method=known_method(scope["method"]))

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                message = {**message, "headers": self._with_own(message["headers"], request.id)}
            elif scope["method"] != "HEAD":
                request.sent_bytes += len(message.get("body", b""))
            await send(message)

        token = current.set(request)
        self.metrics.in_flight.inc()
        try:
            await self.app(scope, receive, send_noted)
        finally:
            self.metrics.in_flight.dec()
            self._finish(request, route_of(scope))
            current.reset(token)

    def _with_own(
        self, headers: list[tuple[bytes, bytes]], request_id: str
    ) -> list[tuple[bytes, bytes]]:
        own = [(b"x-request-id", request_id.encode())]
        if self.streams.is_stopping and not any(name == b"connection" for name, _ in headers):
            own.append((b"connection", b"close"))
        return [*headers, *own]

    def _finish(self, request: RequestContext, route: str) -> None:
        seconds = perf_counter() - request.began
        self.metrics.answered(
            route=route, method=request.method, status=request.status, seconds=seconds
        )
        self.metrics.sent_bytes.inc(request.sent_bytes)
        if request.problem:
            self.metrics.refused(request.problem)
        if logger.isEnabledFor(logging.INFO):
            facts = {
                "method": request.method,
                "route": route,
                "status": request.status,
                "ms": round(1e3 * seconds, 1),
                "bytes": request.sent_bytes,
                "problem": request.problem,
                "text_characters": request.text_characters,
                "text_hash": request.text_hash,
            }
            known = {name: fact for name, fact in facts.items() if fact is not None}
            logger.info("request", extra=known)


def note_text_of(body: Any) -> None:
    """Note the text of a JSON body, if it has one."""
    request = current.get()
    if request is not None and isinstance(body, dict) and isinstance(body.get("text"), str):
        request.note_text(body["text"])


def hash_of(text: str) -> str:
    """A name for a text: the same for equal texts while the process lives."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=6, key=_KEY).hexdigest()


def route_of(scope: Scope) -> str:
    """The template of the route that answered; never a path that a client made up."""
    if (route := scope.get("route")) is not None:
        return str(getattr(route, "path", NO_ROUTE))
    if scope.get("endpoint") is not None and scope.get("root_path"):
        return f"/{scope['root_path'].split('/')[1]}"  # mounted files are one route
    return NO_ROUTE


def _request_id(scope: Scope) -> str:
    """The client's own id if it is short and plain, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return str(value, "ascii")
    return f"{_ids.getrandbits(64):016x}"
