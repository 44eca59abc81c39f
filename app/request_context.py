"""One request and its answer, as the log, the metrics and problem documents see them.

Of a text only its length is kept, and a hash under a key that dies with the process: equal texts
can be told to be equal, and nobody can find out by guessing what they were.
"""

import hashlib
import random
import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from time import perf_counter
from typing import Any

from starlette.types import Scope

from headlight.metrics import known_method

CLIENT_LEFT = 499
SCOPE_KEY = "headlight.exchange"
"""Where a request's scope holds its exchange, for whoever stands outside of its context."""

UNKNOWN = "unknown"
"""The client where it has no address: a proxy may name anything."""

_KEY = secrets.token_bytes(32)

# An id is no secret, and asking the system for each would mean to wait for the interpreter again.
_ids = random.Random(secrets.randbits(128))  # nosec B311
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request that is being answered."""

    id: str
    method: str
    client: str
    began: float = field(default_factory=perf_counter)
    status: int = CLIENT_LEFT
    sent_bytes: int = 0
    problem: str | None = None
    text_characters: int | None = None
    text_hash: str | None = None

    def read_text(self, text: str) -> None:
        """Note that the request brought a text; the text itself is not kept."""
        self.text_characters = len(text)
        self.text_hash = hash_of(text)


current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
"""The exchange whose code runs now, if any does."""


def begin(scope: Scope) -> Exchange:
    """The exchange that a request opens."""
    client = scope.get("client")
    return Exchange(
        id=_request_id(scope),
        method=known_method(scope["method"]),
        client=_address(client[0]) if client else UNKNOWN,
    )


def begin_unread(client: str | None) -> Exchange:
    """The exchange of what could not be read as a request."""
    address = _address(client) if client else UNKNOWN
    return Exchange(id=_new_id(), method=known_method(""), client=address)


def read_body(body: Any) -> None:
    """Note the text of a body that was read as JSON, where it has one."""
    exchange = current.get()
    if exchange is not None and isinstance(body, dict) and isinstance(body.get("text"), str):
        exchange.read_text(body["text"])


def hash_of(text: str) -> str:
    """A name for a text: the same for equal texts while the process lives."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=6, key=_KEY).hexdigest()


@lru_cache(maxsize=1024)
def _address(name: str) -> str:
    try:
        return str(ip_address(name[:64]))
    except ValueError:
        return UNKNOWN


def _request_id(scope: Scope) -> str:
    """What the client calls its request, where that is short and plain; else a new name."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return str(value, "ascii")
    return _new_id()


def _new_id() -> str:
    return f"{_ids.getrandbits(64):016x}"
