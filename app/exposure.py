"""What a server may be told that others can reach: whom it answers, and whom it believes.

All of it is off, or harmless, where only this machine can reach the server.
"""

import ipaddress
import re
from typing import Annotated

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode

from headlight.limit import limit

Several = Annotated[tuple[str, ...], NoDecode]

LEAST_KEY = 16
_KEY = re.compile(rf"[!-+\--~]{{{LEAST_KEY},512}}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]?#]*)")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?")


class Exposure(BaseSettings):
    """Settings for a server that others can reach."""

    allowed_hosts: Several = Field(
        ("localhost", "127.0.0.1", "[::1]"),
        description="Host names the server answers to, separated by commas; `*.example.org` "
        "takes subdomains, `*` takes any. Other names are refused: it stops DNS rebinding.",
    )
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (),
        description="Keys, separated by commas, one of which a client must show for `/api/` and "
        "`/metrics`, as `Authorization: Bearer KEY` or `X-API-Key: KEY`; without any, all may ask. "
        "The page asks its reader for one. Probes need none.",
    )
    cors_origins: Several = Field(
        (),
        description="Origins of other pages whose scripts may ask the API, separated by commas, as "
        "`https://notebook.example.org`; `*` is any. Cookies are never taken.",
    )
    trusted_proxies: Several = Field(
        (),
        description="Addresses or networks of the proxies in front, separated by commas, as "
        "`10.0.0.0/8`: what these say in X-Forwarded-For and X-Forwarded-Proto is believed, and "
        "nobody else. Without it a client is who connects.",
    )
    strict_transport_seconds: int = Field(
        0,
        ge=0,
        description="How long browsers are to remember that this host speaks TLS alone "
        "(Strict-Transport-Security); 0: they are not told. Only where a proxy in front ends TLS.",
    )
    requests_per_minute: int = limit(
        0,
        "requests",
        "Calls of the API that one client, an address or a /64 network, may make in a minute; 0: "
        "any number. It is off because the queue protects the machine by itself, and a classroom "
        "may share one address; a public server wants it.",
        refusal="429 too-many-requests",
        ge=0,
    )
    max_clients: int = limit(
        10_000,
        "clients",
        "Clients whose requests are counted at one time, some hundred bytes each; who asked least "
        "recently is forgotten first.",
        ge=1,
    )

    max_connections: int = limit(
        2_048,
        "connections",
        "Connections that may be open at one time, idle ones included; each takes a file of the "
        "process and some kilobytes. A browser opens six.",
        refusal="503 too-many-connections",
        ge=1,
    )
    header_seconds: float = limit(
        10.0,
        "seconds",
        "How long a client may take to send the head of a request, from the connection or the "
        "first byte on: who dribbles holds a place that others want.",
        refusal="408 headers-too-slow",
        gt=0,
    )
    body_seconds: float = limit(
        20.0,
        "seconds",
        "How long a client may take to send the body of a request: for max_body_bytes in this time "
        "any line is fast enough.",
        refusal="408 body-too-slow",
        gt=0,
    )
    least_read_rate: int = limit(
        4_096,
        "bytes a second",
        "A client that takes less than this of its answer, over stream_patience_seconds, is cut "
        "off: what it leaves unread lies in the memory of the server.",
        ge=1,
    )
    keep_alive_seconds: int = limit(
        75,
        "seconds",
        "How long a connection without a request stays open: longer than proxies keep theirs, 60 "
        "seconds mostly, so that none sends a request into a connection that is just being closed.",
        ge=1,
    )

    @field_validator("allowed_hosts", "api_keys", "cors_origins", "trusted_proxies", mode="before")
    @classmethod
    def _split_at_commas(cls, several: object) -> object:
        if not isinstance(several, str):
            return several
        return tuple(one.strip() for one in several.split(",") if one.strip())

    @field_validator("allowed_hosts")
    @classmethod
    def _check_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not _HOST.fullmatch(host.replace("*", "")):
                rule = "a host name has no scheme, port or path, and IPv6 stands in brackets"
                raise ValueError(f"'{host}': {rule}, as in light.example.org or [::1]")
            if host != "*" and "*" in host.removeprefix("*."):
                raise ValueError(f"'{host}': a wildcard is '*' alone or a first '*.'")
        if not hosts:
            raise ValueError("no host is allowed; name one, or '*' for any")
        return hosts

    @field_validator("api_keys")
    @classmethod
    def _check_keys(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for place, key in enumerate(keys, 1):
            if not _KEY.fullmatch(key.get_secret_value()):
                rule = f"{LEAST_KEY} to 512 visible characters of ASCII without commas"
                raise ValueError(f"key {place} is not {rule}; try `openssl rand -hex 32`")
        return keys

    @field_validator("cors_origins")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                rule = "an origin is a scheme and a host in small letters, without a path"
                raise ValueError(f"'{origin}': {rule}, as in https://notebook.example.org")
        return origins

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError as error:
                raise ValueError(f"{error}; name an address or a network") from error
        return proxies
