"""Ask a Headlight server from Python, and hold what it answers as NumPy arrays.

    from app.client import Client

    with Client("http://127.0.0.1:8000") as headlight:
        trace = headlight.trace("The cat sat on the mat.", layers=[1])
        trace["decoder.layers.1.self_attention.weights"]  # head query key

`AsyncClient` has the same methods to be awaited. PyTorch is not loaded, nor anything of the server.
"""

from app.client.answers import Example, Experts, Limit, Model, Models, Site
from app.client.async_client import AsyncClient
from app.client.client import Client
from app.client.errors import (
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
from app.client.events import (
    Alternative,
    AttentionRow,
    Ended,
    Event,
    ExpertsChosen,
    Started,
    TokenWritten,
)
from app.client.trace import Analysis, Positional, Trace, read_trace
from model.trace import NamedArray, Token

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
