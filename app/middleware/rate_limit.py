"""A limit on how often one client may ask, where the operator set one.

https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
"""

import math
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.errors import Problem
from headlight.middleware.allowances import MINUTE, Allowance, Allowances
from headlight.middleware.guarded import METRICS, is_guarded
from headlight.request_context import UNKNOWN, current

IPV6_PREFIX = 64
"""Bits of an IPv6 address that name a client: whoever has one address has all with these bits."""


class RateLimit:
    """Refuses who asks too often, and tells everybody how often they may still ask.

    Args:
        app: what is asked next.
        allowances: what the clients have left.
    """

    def __init__(self, app: ASGIApp, allowances: Allowances) -> None:
        self.app = app
        self.allowances = allowances
        limit, window = allowances.per_minute, round(MINUTE)
        self.policy = f'"client";q={limit};w={window}'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if not is_guarded(scope):
            await self.app(scope, receive, send)
            return
        exchange = current.get()
        client = client_of(exchange.client if exchange else UNKNOWN)
        if scope["path"] == METRICS:  # who reads them beside asking has an allowance for that alone
            client = f"{client} {METRICS}"
        allowance = self.allowances.take(client)
        headers = self._headers(allowance)
        if allowance.wait:
            raise self._refusal(allowance, headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _headers(self, allowance: Allowance) -> dict[str, str]:
        # Who must wait is told when to come back, as in Retry-After; else when all is refilled.
        seconds = math.ceil(allowance.wait or allowance.full_after)
        left = f'"client";r={allowance.n_left};t={seconds}'
        return {"RateLimit-Policy": self.policy, "RateLimit": left}

    def _refusal(self, allowance: Allowance, headers: dict[str, str]) -> Problem:
        limit, wait = self.allowances.per_minute, math.ceil(allowance.wait)
        return Problem(
            429,
            "too-many-requests",
            f"{limit:,} requests a minute are allowed from one place; try again in {wait} s",
            headers={**headers, "Retry-After": str(wait)},
            limit=limit,
        )


@lru_cache(maxsize=1024)
def client_of(address: str) -> str:
    """Who is counted as one client: an IPv4 address, or an IPv6 network."""
    if address == UNKNOWN:
        return UNKNOWN
    found = ip_address(address)
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ip_network((found, IPV6_PREFIX), strict=False))
