"""Headlight: type a sentence, watch a transformer read it.

    from headlight import Client, load, trace

    trace(load("stories"), "Once upon a time").show()   # in this process
    load("stories").why("Once upon a time")             # which heads spoke, and why
    trace(load(model, tokenizer), "Once upon a time")   # a model of Transformers in memory
    show(tokens, attention)                             # arrays of one's own
    widget("stories", "Once upon a time")               # the page in a notebook, two-way
    Client("http://127.0.0.1:8000").trace("Once upon a time")  # on a server

`AsyncClient` is a `Client` to be awaited, and `read_trace(path.read_bytes())` reads a file of
`headlight trace --safetensors`. The folder `app/` of the repository is this package, and
`model/` is `headlight.model`. A name is imported when it is first used, so a client does not load
PyTorch.
"""

from typing import TYPE_CHECKING, Any

from headlight.distribution import __version__ as __version__
from headlight.distribution import import_whole
from headlight.model import notebook

if TYPE_CHECKING:
    from headlight.cells import widget
    from headlight.client import AsyncClient, Client, read_trace
    from headlight.client.thread import Why
    from headlight.model.checkpoint.loading import load
    from headlight.model.generation.writing import generate
    from headlight.model.trace import Trace
    from headlight.model.tracing import trace
    from headlight.own_tensors import show
    from headlight.saved_page import SavedPage

__all__ = ["AsyncClient", "Client", "generate", "load", "read_trace", "show", "trace", "widget"]

_HOMES = {
    "AsyncClient": "headlight.client",
    "Client": "headlight.client",
    "generate": "headlight.model.generation.writing",
    "load": "headlight.model.checkpoint.loading",
    "read_trace": "headlight.client",
    "show": "headlight.own_tensors",
    "trace": "headlight.model.tracing",
    "widget": "headlight.cells",
}


def __getattr__(name: str) -> Any:
    """Import a public name where it is defined.

    Raises:
        AttributeError: there is no such name.
        ImportError: it is not in the distribution of the client.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'headlight' has no attribute {name!r}")
    return getattr(import_whole(_HOMES[name]), name)


def _page(trace: "Trace", height: int) -> "SavedPage":
    page: SavedPage = import_whole("headlight.saved_page").shown(trace, height)
    return page


def _why(model: Any, *arguments: Any, **choices: Any) -> "Why":
    from headlight.client.thread import why_of

    return why_of(model, *arguments, **choices)


notebook.page = _page
notebook.why = _why


def __dir__() -> list[str]:
    return __all__
