"""Every call of the API: what is sent, and how its answer is read. Nothing here is sent yet."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from headlight.client.answers import (
    Limit,
    Model,
    Models,
    read_limits,
    read_model,
    read_models,
    read_tokens,
)
from headlight.client.errors import UnreadableAnswer
from headlight.client.trace import Positional, Trace, read_positional, read_trace
from headlight.model.trace import Token

BASE = "/api/v1"
JSON = "application/json"
SAFETENSORS = "application/x-safetensors"
EVENT_STREAM = "text/event-stream"

Edit: TypeAlias = Mapping[str, Any]
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Call(Generic[Answer]):
    """A request that may be sent as often as one likes: no call changes anything on the server."""

    method: str
    path: str
    read: Callable[[bytes], Answer]
    accept: str = JSON
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None

    @property
    def request(self) -> dict[str, Any]:
        """The arguments of `httpx.Client.request`."""
        headers = {"Accept": self.accept}
        asked = {"method": self.method, "url": self.path, "params": self.params}
        if self.body is None:
            return {**asked, "headers": headers}
        # Escapes carry what UTF-8 cannot, a lone surrogate: the server says what is wrong with it.
        content = json.dumps(self.body, allow_nan=False).encode("ascii")
        return {**asked, "headers": {**headers, "Content-Type": JSON}, "content": content}


def models() -> Call[Models]:
    """Every model."""
    return Call(method="GET", path=f"{BASE}/models", read=_json(read_models))


def model(model: str) -> Call[Model]:
    """One model's card."""
    return Call(method="GET", path=f"{BASE}/models/{_segment(model)}", read=_json(read_model))


def limits() -> Call[dict[str, Limit]]:
    """Every limit in force."""
    return Call(method="GET", path=f"{BASE}/limits", read=_json(read_limits))


def tokenize(text: str, model: str | None) -> Call[tuple[Token, ...]]:
    """A text in tokens."""
    read = _json(lambda found: read_tokens(found["tokens"]))
    body = _given(text=text, model=model)
    return Call(method="POST", path=f"{BASE}/tokenize", read=read, body=body)


def trace(text: str, **options: Any) -> Call[Trace]:
    """One forward pass."""
    body = _given(text=text, **options)
    return Call(method="POST", path=f"{BASE}/trace", read=read_trace, accept=SAFETENSORS, body=body)


def trace_by_id(trace_id: str, **form: Any) -> Call[Trace]:
    """A trace computed before."""
    path = f"{BASE}/traces/{_segment(trace_id)}"
    params = _given(**form)
    return Call(method="GET", path=path, read=read_trace, accept=SAFETENSORS, params=params)


def generate(text: str, **options: Any) -> Call[None]:
    """A text written on; its answer is read event by event."""
    body = _given(text=text, **options)
    path = f"{BASE}/generate"
    return Call(method="POST", path=path, read=_nothing, accept=EVENT_STREAM, body=body)


def positional(**wanted: Any) -> Call[Positional]:
    """The encoding of a scheme."""
    params, path = _given(**wanted), f"{BASE}/positional"
    return Call(method="GET", path=path, read=read_positional, accept=SAFETENSORS, params=params)


def health(path: str) -> Call[None]:
    """`/healthz` or `/readyz`."""
    return Call(method="GET", path=path, read=_nothing)


def metrics() -> Call[str]:
    """What the server counts, for Prometheus."""
    return Call(method="GET", path="/metrics", read=bytes.decode, accept="text/plain")


def _given(**members: Any) -> dict[str, Any]:
    """What was given: None leaves it to the server. Any sequence is a list in JSON."""
    return {
        name: list(value) if _is_sequence(value) else value
        for name, value in members.items()
        if value is not None
    }


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _segment(name: str) -> str:
    """A name as one part of a path, whatever is in it."""
    return quote(name.encode("utf-8", "replace"), safe="")


def _json(read: Callable[[Any], Answer]) -> Callable[[bytes], Answer]:
    def read_json(content: bytes) -> Answer:
        try:
            return read(json.loads(content))
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableAnswer(f"the answer is none of Headlight's: {error!r}") from error

    return read_json


def _nothing(_: bytes) -> None:
    return None
