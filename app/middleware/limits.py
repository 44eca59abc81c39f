"""Limits of requests: their headers, the time that a body takes, and a rate for each client.

Starlette limits the size of a body, `headlight.tracing.jobs.check_texts` the length of a text.

The rate is by API key, or by address if no keys are used. The generic cell rate algorithm keeps
one number per client: the time at which its quota is full again. A minute's requests may come at
once, then one every 1/n of a minute.

slowapi was considered: it limits decorated routes only and sends no RateLimit headers of the IETF
draft; the moving window of its `limits` keeps a timestamp for every request.

https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm
https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
"""

import asyncio
import math
import time
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from cachetools import LRUCache
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.addresses import METRICS, is_rated, path_of
from headlight.middleware.security import KeyRing, shown_keys
from headlight.problems import Problem
from headlight.serving.replicas import Quota, Shared
from headlight.settings import BODY_SECONDS, MAX_HEADER_BYTES

_WITH_BODY = {b"content-length", b"transfer-encoding"}

MINUTE = 60.0

MAX_CLIENTS = 10_000
"""Clients that are remembered, some hundred bytes each; the least recent is forgotten first."""

IPV6_PREFIX = 64
"""Bits of an IPv6 address that name a client, who has every address with these bits."""


class RequestLimits:
    """Rejects oversized headers, and requests with both Content-Length and Transfer-Encoding.

    Of the two lengths a proxy in front may believe one and the server the other: what lies between
    would be another client's next request. https://www.rfc-editor.org/rfc/rfc9112#section-6.1
    """

    def __init__(self, app: ASGIApp, max_header_bytes: int = MAX_HEADER_BYTES) -> None:
        self.app = app
        self.max_header_bytes = max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or reject it."""
        if scope["type"] == "http":
            self._check(scope)
        await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        limit, close = self.max_header_bytes, {"Connection": "close"}
        if header_bytes(scope) > limit:
            detail = f"the target and the headers are longer than {limit:,} bytes; send less"
            raise Problem(431, "headers-too-large", detail, limit=limit, headers=close)
        headers = Headers(scope=scope)
        if "transfer-encoding" in headers and "content-length" in headers:
            detail = "Content-Length and Transfer-Encoding contradict each other; send one of them"
            raise Problem(400, "ambiguous-length", detail, headers=close)


def header_bytes(scope: Scope) -> int:
    """Return the bytes of a request's target and headers."""
    target = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    return target + sum(len(name) + len(value) for name, value in scope["headers"])


class BodyTimeout:
    """Rejects a body that takes too long to arrive.

    A reverse proxy does this too; without one a slow body would keep its place in the queue.
    """

    def __init__(self, app: ASGIApp, seconds: float = BODY_SECONDS) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a deadline for its body."""
        if scope["type"] == "http" and any(name in _WITH_BODY for name, _ in scope["headers"]):
            receive = self._with_deadline(receive)
        await self.app(scope, receive, send)

    def _with_deadline(self, receive: Receive) -> Receive:
        deadline = asyncio.get_running_loop().time() + self.seconds
        is_complete = False

        async def receive_in_time() -> Message:
            nonlocal is_complete
            if is_complete:  # what follows is the client's disconnect, which may come at any time
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise self._rejection() from None
            is_complete = not message.get("more_body", False)
            return message

        return receive_in_time

    def _rejection(self) -> Problem:
        detail = f"the body did not arrive within {self.seconds:g} s; send it again, and faster"
        headers = {"Connection": "close"}
        return Problem(408, "body-too-slow", detail, limit=self.seconds, headers=headers)


class RateLimiter:
    """The quotas of the clients that asked last."""

    def __init__(
        self,
        per_minute: int,
        max_clients: int = MAX_CLIENTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_minute = per_minute
        self.clock = clock
        self.full_at: LRUCache[str, float] = LRUCache(max_clients)

    def take(self, client: str) -> Quota:
        """Take one request from a client's quota, if it has one left."""
        now, each = self.clock(), MINUTE / self.per_minute
        full_at = max(self.full_at.get(client, now), now)
        wait = max(0.0, full_at + each - now - MINUTE)
        if wait <= 0:
            full_at += each
            self.full_at[client] = full_at
        full_after = full_at - now
        # Rounded, as a sum of many thirds of a second is not quite what it should be.
        remaining = max(0, math.floor(round((MINUTE - full_after) / each, 6)))
        return Quota(remaining=remaining, wait=wait, full_after=full_after)


class RateLimit:
    """Rejects clients that ask too often, and sends all of them the state of their quota.

    Each valid key counts as one client, from whatever address it is sent. Servers that share count
    together.
    """

    def __init__(
        self, app: ASGIApp, per_minute: int, keys: KeyRing, shared: Shared | None = None
    ) -> None:
        self.app = app
        self.keys = keys
        self.shared = shared
        self.limiter = RateLimiter(per_minute)
        self.policy = f'"client";q={per_minute};w={round(MINUTE)}'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or reject it."""
        if scope["type"] != "http" or not is_rated(path_of(scope)):
            await self.app(scope, receive, send)
            return
        client = self.keys.valid_key(shown_keys(Headers(scope=scope))) or client_of(scope)
        if path_of(scope) == METRICS:  # a scraper on a client's machine has its own quota
            client = f"{client} {METRICS}"
        quota = await self._take(client)
        headers = self._headers(quota)
        if quota.wait:
            raise self._rejection(quota, headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Problem as problem:  # of an inner layer, such as a missing key
            problem.headers = {**(problem.headers or {}), **headers}
            raise

    async def _take(self, client: str) -> Quota:
        if self.shared is not None:
            quota = await self.shared.take(client, self.limiter.per_minute)
            if quota is not None:
                return quota
        return self.limiter.take(client)

    def _headers(self, quota: Quota) -> dict[str, str]:
        seconds = math.ceil(quota.wait or quota.full_after)
        left = f'"client";r={quota.remaining};t={seconds}'
        return {"RateLimit-Policy": self.policy, "RateLimit": left}

    def _rejection(self, quota: Quota, headers: dict[str, str]) -> Problem:
        limit, wait = self.limiter.per_minute, math.ceil(quota.wait)
        return Problem(
            429,
            "too-many-requests",
            f"{limit:,} requests a minute are allowed for each client; try again in {wait} s",
            headers={**headers, "Retry-After": str(wait)},
            limit=limit,
        )


def client_of(scope: Scope) -> str:
    """Return the name of a client: its IPv4 address or its IPv6 network."""
    client = scope.get("client")
    return _network_of(client[0][:64]) if client else ""


@lru_cache(maxsize=1024)
def _network_of(address: str) -> str:
    try:
        ip = ip_address(address)
    except ValueError:  # a proxy may name anything
        return ""
    if not isinstance(ip, IPv6Address):
        return str(ip)
    if ip.ipv4_mapped:
        return str(ip.ipv4_mapped)
    return str(ip_network((ip, IPV6_PREFIX), strict=False))
