"""Headlight: type a sentence, watch a transformer read it.

    from headlight import Client, AsyncClient, load, trace

`app/` of the repository is this package; `model/` is `headlight.model`. The four names are imported
when they are first used, so that a client never loads PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headlight.client import AsyncClient, Client
    from headlight.model.checkpoint import load
    from headlight.model.tracing import trace

__all__ = ["AsyncClient", "Client", "load", "trace"]

_HOMES = {
    "AsyncClient": "headlight.client",
    "Client": "headlight.client",
    "load": "headlight.model.checkpoint",
    "trace": "headlight.model.tracing",
}


def __getattr__(name: str) -> Any:
    """Import a public name where it is defined.

    Raises:
        AttributeError: there is no such name.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'headlight' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
