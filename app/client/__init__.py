"""Ask a Headlight server from Python, and hold what it answers as NumPy arrays.

    from headlight.client import Client

    with Client("http://127.0.0.1:8000") as headlight:
        trace = headlight.trace("The cat sat on the mat.", layers=[1])
        trace["decoder.layers.1.self_attention.weights"]  # head query key

`AsyncClient` has the same methods to be awaited. PyTorch is not loaded, nor anything of the server.
"""

from headlight.client.answers import Example, Experts, Limit, Model, Models, Site
from headlight.client.async_client import AsyncClient
from headlight.client.client import Client
from headlight.client.errors import (
    ConnectionFailed,
    HeadlightError,
    InvalidRequest,
    NotFound,
    OverLimit,
    ProblemError,
    ServerFault,
    TimedOut,
    TooManyRequests,
    TooSlow,
    Unauthorized,
    Unavailable,
    UnreadableAnswer,
)
from headlight.client.events import (
    Alternative,
    AttentionRow,
    Ended,
    Event,
    ExpertsChosen,
    Started,
    TokenWritten,
)
from headlight.client.trace import Analysis, Positional, Trace, read_trace
from headlight.model.trace import NamedArray, Token

__all__ = [
    "Alternative",
    "Analysis",
    "AsyncClient",
    "AttentionRow",
    "Client",
    "ConnectionFailed",
    "Ended",
    "Event",
    "Example",
    "Experts",
    "ExpertsChosen",
    "HeadlightError",
    "InvalidRequest",
    "Limit",
    "Model",
    "Models",
    "NamedArray",
    "NotFound",
    "OverLimit",
    "Positional",
    "ProblemError",
    "ServerFault",
    "Site",
    "Started",
    "TimedOut",
    "Token",
    "TokenWritten",
    "TooManyRequests",
    "TooSlow",
    "Trace",
    "Unauthorized",
    "Unavailable",
    "UnreadableAnswer",
    "read_trace",
]
