"""A Python client of a Headlight server; arrays come as NumPy.

    from headlight import Client

    with Client("http://127.0.0.1:8000") as headlight:
        trace = headlight.trace("The cat sat on the mat.", layers=[1])
        trace["decoder.layers.1.self_attention.weights"]  # head query key

`AsyncClient` has the same methods, to be awaited. Neither PyTorch nor the server is imported.
"""

from headlight.client.client import AsyncClient, Client
from headlight.client.decode import (
    Analysis,
    Event,
    Experiment,
    ExperimentEvent,
    GenerationEvent,
    Positional,
    Trace,
    named_array,
    read_trace,
)
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
from headlight.model.trace import NamedArray, Token
from headlight.schemas import LimitAnswer
from headlight.schemas.experiments import (
    ExperimentEnded,
    ExperimentFrame,
    ExperimentStarted,
    ExperimentWaiting,
)
from headlight.schemas.generation import Ended, Started, TokenWritten
from headlight.schemas.models import ModelAnswer, ModelsAnswer, ModelSummary

__all__ = [
    "Analysis",
    "AsyncClient",
    "Client",
    "ConnectionFailed",
    "Ended",
    "Event",
    "Experiment",
    "ExperimentEnded",
    "ExperimentEvent",
    "ExperimentFrame",
    "ExperimentStarted",
    "ExperimentWaiting",
    "GenerationEvent",
    "HeadlightError",
    "InvalidRequest",
    "LimitAnswer",
    "ModelAnswer",
    "ModelSummary",
    "ModelsAnswer",
    "NamedArray",
    "NotFound",
    "OverLimit",
    "Positional",
    "ProblemError",
    "ServerFault",
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
    "named_array",
    "read_trace",
]
