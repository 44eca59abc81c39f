"""Every call of the API as a function: its arguments, its request, and how its answer is read.

`Client` and `AsyncClient` turn each function into a method that sends the call. None is left out of
a request, so the server's default applies.
"""

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, SupportsIndex, TypeVar, Unpack, get_args, get_type_hints
from urllib.parse import quote

import numpy as np
from pydantic import BaseModel

from headlight.client.arguments import (
    AtlasSearchArguments,
    CircuitArguments,
    GenerateArguments,
    PositionalArguments,
    Strings,
    TokenizeArguments,
    TraceArguments,
    TracesArguments,
)
from headlight.client.decode import (
    EXPERIMENT,
    GENERATION,
    EventKinds,
    Experiment,
    ExperimentEvent,
    GenerationEvent,
    Positional,
    Trace,
    read_experiment,
    read_json,
    read_positional,
    read_safetensors,
    read_trace,
    read_traces,
)
from headlight.client.thread import DRAWN, THREAD, Why, read_why
from headlight.forms import is_list
from headlight.model.trace import NamedArray
from headlight.schemas import EVENT_STREAM, JSON, SAFETENSORS, SVG, LimitAnswer
from headlight.schemas.atlas import (
    AtlasAnswer,
    AtlasHeadAnswer,
    AtlasMatchesAnswer,
    AtlasSearchAnswer,
    AtlasSearchRequest,
    AtlasSpreadAnswer,
)
from headlight.schemas.circuits import CircuitAnswer, CircuitRequest, TasksAnswer
from headlight.schemas.experiments import ExperimentAnswer, ExperimentsAnswer
from headlight.schemas.generation import GenerateRequest
from headlight.schemas.links import LinkAnswer, LinkStateAnswer
from headlight.schemas.models import ModelAnswer, ModelsAnswer
from headlight.schemas.traces import (
    DType,
    PositionalRequest,
    TokenAnswer,
    TokenizeAnswer,
    TokenizeRequest,
    TraceRequest,
    TracesRequest,
)

BASE = "/api/v1"

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Call(Generic[Answer]):
    """A request, and how to read its answer. All calls are safe to repeat."""

    method: str
    path: str
    read: Callable[[bytes], Answer]
    accept: str = JSON
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    is_immutable: bool = False
    """The answer never changes, so a client keeps it with its entity tag."""
    events: EventKinds = field(default_factory=lambda: GENERATION)
    """The types of the events of a stream, by name."""

    @property
    def key(self) -> tuple[Any, ...]:
        """The key under which a client keeps the answer: equal calls have equal keys."""
        named = ((name, str(value)) for name, value in self.params.items())
        return self.path, *named

    def request(self, etag: str | None = None) -> dict[str, Any]:
        """Return arguments for `httpx.Client.request`; `etag` makes the request conditional."""
        headers = {"Accept": self.accept}
        if etag:
            headers["If-None-Match"] = etag
        content = None
        if self.body is not None:
            headers["Content-Type"] = JSON
            content = f"{{{', '.join(map(_json_member, self.body.items()))}}}".encode()
        given = {"params": self.params, "headers": headers, "content": content}
        return {"method": self.method, "url": self.path, **given}


P = ParamSpec("P")

FORMS = (TokenizeRequest, TraceRequest, TracesRequest, GenerateRequest, CircuitRequest)
LISTS = {"name"} | {
    name for form in FORMS for name, field in form.model_fields.items() if is_list(field.annotation)
}
"""The arguments that are lists; one item may be given in place of a list of it."""


def takes(
    form: type[BaseModel],
) -> Callable[[Callable[P, Call[Answer]]], Callable[P, Call[Answer]]]:
    """Return a decorator of a function whose other arguments are the fields of a request.

    Its signature and its documentation name them; so does the type of `options` for a checker.
    """

    def decorate(endpoint: Callable[P, Call[Answer]]) -> Callable[P, Call[Answer]]:
        signature = inspect.signature(endpoint)
        *named, options = signature.parameters.values()
        hints = get_type_hints(get_args(options.annotation)[0])
        fields = {
            name: field
            for name, field in form.model_fields.items()
            if name not in signature.parameters
        }

        @functools.wraps(endpoint)
        def call(*arguments: P.args, **given: P.kwargs) -> Call[Answer]:
            if unknown := given.keys() - fields.keys() - signature.parameters.keys():
                name = f"{endpoint.__name__}()"
                raise TypeError(
                    f"{name} takes no argument {min(unknown)}; it takes {', '.join(fields)}"
                )
            return endpoint(*arguments, **given)

        described = (f"    {name}: {field.description}" for name, field in fields.items())
        call.__doc__ = "\n".join((inspect.getdoc(endpoint) or "", "", "Args:", *described))
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[
                *named,
                *(
                    options.replace(
                        name=name,
                        kind=inspect.Parameter.KEYWORD_ONLY,
                        default=inspect.Parameter.empty if field.is_required() else None,
                        annotation=hints.get(name, Any),
                    )
                    for name, field in fields.items()
                ),
            ]
        )
        return call

    return decorate


def models() -> Call[ModelsAnswer]:
    """Every model of the server, in short: `model` adds its sites and figures."""
    return Call(method="GET", path=f"{BASE}/models", read=read_json(ModelsAnswer))


def model(model: str) -> Call[ModelAnswer]:
    """One model's card, with its sites and figures."""
    return Call(method="GET", path=f"{BASE}/models/{_segment(model)}", read=read_json(ModelAnswer))


def atlas(model: str) -> Call[AtlasAnswer]:
    """Describe what a model's atlas was made of."""
    return Call(method="GET", path=_atlas(model), read=read_json(AtlasAnswer))


def atlas_head(model: str, *, attention: str, head: SupportsIndex) -> Call[AtlasHeadAnswer]:
    """Count the commonest pairs, distances and parts of speech of one head over the corpus.

    Args:
        model: an id.
        attention: its path, `decoder.layers.0.self_attention`.
        head: its number.
    """
    params = _given({"attention": attention, "head": head})
    return Call(
        method="GET", path=f"{_atlas(model)}/head", read=read_json(AtlasHeadAnswer), params=params
    )


def atlas_spread(model: str, *, attention: str, head: SupportsIndex) -> Call[AtlasSpreadAnswer]:
    """Divide the sentences of the corpus in tenths by one head's largest weight, with one of each.

    Args:
        model: an id.
        attention: its path.
        head: its number.
    """
    path, params = f"{_atlas(model)}/spread", _given({"attention": attention, "head": head})
    return Call(method="GET", path=path, read=read_json(AtlasSpreadAnswer), params=params)


@takes(AtlasSearchRequest)
def atlas_search(model: str, **options: Unpack[AtlasSearchArguments]) -> Call[AtlasSearchAnswer]:
    """Rank the heads that attend from some words to others, with sentences of the corpus."""
    params = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in _given(options).items()
    }
    path = f"{_atlas(model)}/search"
    return Call(method="GET", path=path, read=read_json(AtlasSearchAnswer), params=params)


def atlas_matches(model: str, *, other: str) -> Call[AtlasMatchesAnswer]:
    """Match every head with the head of another model that does the most alike, by both atlases.

    Args:
        model: an id.
        other: the id of the other model.
    """
    path, params = f"{_atlas(model)}/matches", {"other": other}
    return Call(method="GET", path=path, read=read_json(AtlasMatchesAnswer), params=params)


def _atlas(model: str) -> str:
    return f"{BASE}/models/{_segment(model)}/atlas"


def limits() -> Call[dict[str, LimitAnswer]]:
    """Every limit in force, by name."""
    return Call(method="GET", path=f"{BASE}/limits", read=read_json(dict[str, LimitAnswer]))


def weights(name: Strings, *, model: str) -> Call[dict[str, NamedArray]]:
    """Trained matrices by name, of attention by head.

    Args:
        name: names or globs: `decoder.layers.0.self_attention.W_Q`, `*.W_O`, `*.W_E`, `W_U`.
        model: an id.
    """
    path = f"{BASE}/models/{_segment(model)}/weights"
    params = _given({"name": name})
    return Call(method="GET", path=path, read=_read_arrays, accept=SAFETENSORS, params=params)


@takes(TokenizeRequest)
def tokenize(
    text: str | None = None, **options: Unpack[TokenizeArguments]
) -> Call[list[TokenAnswer]]:
    """Split a text into a model's tokens, or spell token ids."""
    body = _given({"text": text, **options})
    return Call(method="POST", path=f"{BASE}/tokenize", read=_read_tokens, body=body)


@takes(TraceRequest)
def trace(text: str | None = None, **options: Unpack[TraceArguments]) -> Call[Trace]:
    """Run a model on a text and return what its forward pass computed.

    `dtype` and `triangle` only make the answer smaller: it is read back as it was.
    """
    body = _given({"text": text, **options})
    return Call(method="POST", path=f"{BASE}/trace", read=read_trace, accept=SAFETENSORS, body=body)


def why(
    text: str,
    *,
    model: str | None = None,
    target: str | None = None,
    position: SupportsIndex | None = None,
    token: int | str | None = None,
    against: int | str | None = None,
) -> Call[Why]:
    """Say which head spoke for a word, and why it looked where it did, step by step.

    The `repr` of the answer are the lines that `headlight why` prints; its `show()` is the page.

    Args:
        text: the text.
        model: an id; None: the default model.
        target: of an encoder–decoder.
        position: of the prediction; None: the last.
        token: to explain, an id or a text; None: the likeliest.
        against: to compare it with; None: the likeliest of all others.
    """
    chosen = _given({"position": position, "token": token, "against": against})
    asked = {"capture": [DRAWN], "analyses": [THREAD], "logit_difference": chosen}
    body = _given({"text": text, "model": model, "target": target, **asked})
    return Call(method="POST", path=f"{BASE}/trace", read=read_why, accept=SAFETENSORS, body=body)


@takes(TracesRequest)
def traces(texts: Strings | None = None, **options: Unpack[TracesArguments]) -> Call[list[Trace]]:
    """Run a model on up to 64 texts; each trace is as `trace` returns it, with its arguments."""
    body = _given({"texts": texts, **options})
    path = f"{BASE}/traces"
    return Call(method="POST", path=path, read=read_traces, accept=SAFETENSORS, body=body)


def trace_by_id(
    trace_id: str, *, dtype: DType | None = None, triangle: bool | None = None
) -> Call[Trace]:
    """Return a trace computed before, for as long as the server keeps it.

    Raises:
        NotFound: it is no longer kept; `trace` computes it again.
    """
    return Call(
        method="GET",
        path=f"{BASE}/traces/{_segment(trace_id)}",
        read=read_trace,
        accept=SAFETENSORS,
        params=_given({"dtype": dtype, "triangle": triangle}),
        is_immutable=True,
    )


def tile(
    trace_id: str,
    attention: str,
    head: SupportsIndex,
    *,
    queries: tuple[int, int],
    keys: tuple[int, int],
    resolution: SupportsIndex | None = None,
) -> Call[dict[str, NamedArray]]:
    """Return a rectangle of one head's weights of a trace with a resolution, without a new pass.

    Args:
        trace_id: of the trace.
        attention: its path, `decoder.layers.0.self_attention`.
        head: the head.
        queries: the first and the one after the last.
        keys: as the queries.
        resolution: the most bins a side; None: 512. `max_map` is missing if every bin is one cell.

    Raises:
        NotFound: the trace's queries and keys are no longer kept; `trace` computes it again.
    """
    named = {"attention": attention, "head": head, "resolution": resolution}
    parts = {"queries": "{}:{}".format(*queries), "keys": "{}:{}".format(*keys)}
    path = f"{BASE}/traces/{_segment(trace_id)}/tile"
    params = _given(named) | parts
    return Call(method="GET", path=path, read=_read_arrays, accept=SAFETENSORS, params=params)


@takes(GenerateRequest)
def generate(
    text: str | None = None, **options: Unpack[GenerateArguments]
) -> Call[GenerationEvent]:
    """Continue a text: `Started`, one `TokenWritten` for each token, `Ended`.

    Leaving the loop closes the stream, and the server stops generating.
    """
    body = _given({"text": text, **options})
    path = f"{BASE}/generate"
    return Call(method="POST", path=path, read=_read_nothing, accept=EVENT_STREAM, body=body)


def tasks() -> Call[TasksAnswer]:
    """Every task for circuits that ships, with its rule."""
    return Call(method="GET", path=f"{BASE}/tasks", read=read_json(TasksAnswer))


@takes(CircuitRequest)
def circuit(*, model: str, **options: Unpack[CircuitArguments]) -> Call[CircuitAnswer]:
    """Find the few edges of a model that do a task, and measure their own run."""
    body = _given(options)
    path = f"{BASE}/models/{_segment(model)}/circuit"
    return Call(method="POST", path=path, read=read_json(CircuitAnswer), body=body)


@takes(PositionalRequest)
def positional(length: SupportsIndex, **options: Unpack[PositionalArguments]) -> Call[Positional]:
    """Return the encoding of `length` positions, by a scheme and its sizes or by a model."""
    params = _given({"length": length, **options}, lists=frozenset())
    path = f"{BASE}/positional"
    return Call(method="GET", path=path, read=read_positional, accept=SAFETENSORS, params=params)


def experiments() -> Call[ExperimentsAnswer]:
    """Every experiment in short."""
    return Call(method="GET", path=f"{BASE}/experiments", read=read_json(ExperimentsAnswer))


def experiment_description(name: str) -> Call[ExperimentAnswer]:
    """One experiment: its parameters with their limits, its arrays, and what to see."""
    path = f"{BASE}/experiments/{_segment(name)}"
    return Call(method="GET", path=path, read=read_json(ExperimentAnswer))


def experiment(name: str, /, **parameters: Any) -> Call[Experiment]:
    """Run an experiment and return its whole result.

    Args:
        name: of the experiment.
        parameters: those that differ from their defaults.
    """
    path = f"{BASE}/experiments/{_segment(name)}"
    return Call(method="POST", path=path, read=read_experiment, body=parameters)


def experiment_frames(name: str, /, **parameters: Any) -> Call[ExperimentEvent]:
    """Run an experiment: `ExperimentStarted`, each `ExperimentFrame`, `ExperimentEnded`.

    A long one on a busy server has `ExperimentWaiting` first, whenever fewer runs are ahead of it.

    Leaving the loop closes the stream, and the server stops computing.

    Args:
        name: of the experiment.
        parameters: those that differ from their defaults.
    """
    path, accept = f"{BASE}/experiments/{_segment(name)}", EVENT_STREAM
    body, events = parameters, EXPERIMENT
    return Call(
        method="POST", path=path, read=_read_nothing, accept=accept, body=body, events=events
    )


def share(state: str) -> Call[LinkAnswer]:
    """Keep the state of a page, and return a short link to it.

    Args:
        state: the fragment of the page's address, without `#`.
    """
    return Call(
        method="POST", path=f"{BASE}/links", read=read_json(LinkAnswer), body={"state": state}
    )


def link(link_id: str) -> Call[str]:
    """Return the state of a link.

    Raises:
        NotFound: it is no longer kept.
    """
    return Call(method="GET", path=f"{BASE}/links/{_segment(link_id)}", read=_read_state)


def link_qr(link_id: str) -> Call[str]:
    """Return the QR code of a link as SVG.

    Raises:
        NotFound: the link is no longer kept.
    """
    path = f"{BASE}/links/{_segment(link_id)}/qr.svg"
    return Call(method="GET", path=path, read=bytes.decode, accept=SVG)


def metrics() -> Call[str]:
    """Return the server's metrics, in the text format of Prometheus."""
    return Call(method="GET", path="/metrics", read=bytes.decode, accept="text/plain")


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _given(arguments: Mapping[str, Any], lists: Set[str] = LISTS) -> dict[str, Any]:
    """Return the arguments that are not None; a single item becomes a list where one belongs."""
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in given.keys() & lists:
        is_list = isinstance(given[name], Iterable) and not isinstance(given[name], str | Mapping)
        given[name] = list(given[name]) if is_list else [given[name]]
    return given


def _json_member(member: tuple[str, Any]) -> str:
    """Return a member of a request as JSON; raises ValueError for NaN and infinities.

    A letter beyond ASCII takes two to four bytes, and not the six or twelve of an escape, so that
    a long text in any script fits a body. A lone surrogate, which UTF-8 does not have, is escaped;
    the server reports it.
    """
    name, value = member
    try:
        text = json.dumps(value, allow_nan=False, default=_plain, ensure_ascii=False)
    except ValueError as error:
        raise ValueError(f"{name} is {value!r}; JSON holds finite numbers only") from error
    return f"{json.dumps(name)}: {_LONE_SURROGATE.sub(_escaped, text)}"


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _plain(value: Any) -> Any:
    """Convert a NumPy number or array to plain data for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be sent as JSON")


def _segment(name: str) -> str:
    return quote(name.encode("utf-8", "replace"), safe="")


def _read_tokens(content: bytes) -> list[TokenAnswer]:
    return read_json(TokenizeAnswer)(content).tokens


def _read_state(content: bytes) -> str:
    return read_json(LinkStateAnswer)(content).state


def _read_arrays(content: bytes) -> dict[str, NamedArray]:
    return read_safetensors(content)[0]


def _read_nothing(_: bytes) -> Any:
    return None
