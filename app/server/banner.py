"""The banner of `headlight serve`: address, model, limits and access.

It describes the server alone; nothing of a request is ever printed.
"""

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headlight.settings import Settings

if TYPE_CHECKING:
    from headlight.registry import Registry

MEBIBYTE = 2**20


def greet(console: Console, address: str, settings: Settings, registry: "Registry") -> None:
    """Print the address, a line each for model, limits and access, then hints.

    Args:
        console: to print on.
        address: of the server.
        settings: of the server.
        registry: its models.
    """
    console.print(f"Headlight is at {address} (API: {address}/docs)", style="bold", soft_wrap=True)
    facts = Table.grid(padding=(0, 2))
    for name, what in (
        ("model", _model(settings, registry)),
        ("limits", _limits(settings)),
        ("access", _access(settings)),
    ):
        facts.add_row(Text(name, style="dim"), what)
    console.print(facts)
    for hint in _hints(settings):
        console.print(hint, style="yellow")
    for model, reason in registry.unavailable.items():
        console.print(f"model {model} is left out: {reason}", style="yellow")
    console.print("Ctrl-C stops.", style="dim")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _model(settings: Settings, registry: "Registry") -> str:
    n_others = len(registry.descriptions) - 1
    others = f" and {n_others} more" if n_others else ""
    threads = "PyTorch's threads"
    if settings.threads:
        threads = f"{settings.threads} thread{'s' * (settings.threads > 1)}"
    if settings.workers > 1:
        threads += f" · {settings.workers} workers"
    precision = str(registry.precision).removeprefix("torch.")
    return f"{registry.default}{others} · {registry.device} · {precision} · {threads}"


def _limits(settings: Settings) -> str:
    return (
        f"{settings.max_characters:,} characters · {settings.max_cells / 1e6:g} M numbers · "
        f"{settings.queue_length} waiting · {settings.max_streams} streams · "
        f"{settings.cache_bytes / MEBIBYTE:.0f} MiB cache"
    )


def _access(settings: Settings) -> str:
    rate = settings.requests_per_minute
    return " · ".join(
        (
            "this machine only" if is_loopback(settings.host) else "other machines, too",
            "with a key" if settings.api_keys else "no key",
            f"{rate} calls a minute each" if rate else "no rate limit",
        )
    )


def _hints(settings: Settings) -> Iterator[str]:
    """Advice for a server that others can reach."""
    if is_loopback(settings.host):
        return
    yield f"It answers to {', '.join(settings.allowed_hosts)}; HEADLIGHT_ALLOWED_HOSTS names more."
    if not settings.api_keys:
        yield "It needs no key; HEADLIGHT_API_KEYS sets some."
    if not settings.requests_per_minute:
        yield "It has no rate limit; HEADLIGHT_REQUESTS_PER_MINUTE sets one."
