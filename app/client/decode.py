"""Read answers: traces and encodings from safetensors, events from a stream, the rest from JSON."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from pydantic import TypeAdapter
from safetensors import SafetensorError

from headlight.client.errors import UnreadableAnswer, problem_error
from headlight.model import trace
from headlight.model.trace import NamedArray, Token
from headlight.schemas import LOWER_TRIANGLE
from headlight.schemas.experiments import (
    ArrayAnswer,
    ExperimentEnded,
    ExperimentFrame,
    ExperimentResult,
    ExperimentStarted,
    ExperimentWaiting,
)
from headlight.schemas.generation import Ended, Started, TokenWritten

Answer = TypeVar("Answer")
GenerationEvent: TypeAlias = Started | TokenWritten | Ended
ExperimentEvent: TypeAlias = (
    ExperimentWaiting | ExperimentStarted | ExperimentFrame | ExperimentEnded
)
Event: TypeAlias = GenerationEvent | ExperimentEvent
EventKinds: TypeAlias = Mapping[str, type[Event]]

_PREFIX = "analyses."
_FIELDS = ("id", "model", "revision", "precision", "text", "target")
_HEADER_BYTES = 8
_TOKENS = TypeAdapter(tuple[Token, ...])

GENERATION: EventKinds = {"start": Started, "token": TokenWritten, "end": Ended}
EXPERIMENT: EventKinds = {
    "waiting": ExperimentWaiting,
    "start": ExperimentStarted,
    "frame": ExperimentFrame,
    "end": ExperimentEnded,
}


@dataclass(frozen=True, kw_only=True)
class Analysis(Mapping[str, Any]):
    """The result of an analysis: arrays by name, and metadata such as `texts` or `labels`."""

    arrays: Mapping[str, NamedArray]
    metadata: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Return an array, or a member of the metadata, by name."""
        if name in self.arrays:
            return self.arrays[name].data
        if name in self.metadata:
            return self.metadata[name]
        raise KeyError(f"there is no {name!r}; the names are {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return iter((*self.arrays, *self.metadata))

    def __len__(self) -> int:
        return len(self.arrays) + len(self.metadata)


class Analyses(dict[str, Analysis]):
    """The analyses of a trace by name; the error of a missing one says how to get it."""

    def __missing__(self, name: str) -> Analysis:
        held = ", ".join(self) or "none"
        raise KeyError(
            f"there is no analysis {name!r}, ask for it with analyses=[{name!r}]; "
            f"the analyses are {held}"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Trace(trace.Trace):
    """One forward pass as a server answered it.

        trace["decoder.layers.0.self_attention.weights"]          # a NumPy array: head query key
        trace.tensors["decoder.layers.0.self_attention.weights"].axes
        trace.analyses["next_token"]["probabilities"]

    `Client.trace_by_id` returns the same trace again for its `id`. `timings` are milliseconds by
    step.
    """

    id: str
    analyses: Mapping[str, Analysis] = field(default_factory=Analyses)


def _named(name: str, arrays: Mapping[str, NamedArray]) -> NDArray[np.generic]:
    if name not in arrays:
        raise KeyError(f"there is no {name!r}; the arrays are {', '.join(arrays)}")
    return arrays[name].data


@dataclass(frozen=True, kw_only=True)
class Positional:
    """An encoding of positions; sizes that its scheme does not use are None."""

    scheme: str
    model: str | None
    length: int
    width: int | None
    heads: int | None
    tensors: Mapping[str, NamedArray]

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        """Return an array by name: `encoding`, `angles`, `slopes`."""
        return _named(name, self.tensors)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The result of an experiment: arrays by name, and every parameter."""

    experiment: str
    parameters: Mapping[str, Any]
    arrays: Mapping[str, NamedArray]

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        """Return an array by name."""
        return _named(name, self.arrays)


def read_experiment(content: bytes) -> Experiment:
    """Read the result of an experiment.

    Raises:
        UnreadableAnswer: the content is anything else.
    """
    result = _read_result(content)
    return Experiment(
        experiment=result.experiment,
        parameters=result.parameters,
        arrays={name: named_array(array) for name, array in result.arrays.items()},
    )


def named_array(array: ArrayAnswer) -> NamedArray:
    """Return the array that an answer or an event of an experiment holds; null is NaN."""
    dtype = "str" if array.dtype == "string" else array.dtype
    data = np.array(array.data, dtype=object)
    if array.dtype.startswith("float"):
        data[data == None] = np.nan  # noqa: E711 - elementwise
    return NamedArray(tuple(array.axes), data.astype(dtype).reshape(array.shape))


def read_trace(content: bytes) -> Trace:
    """Read a trace from a safetensors answer, or from a file that holds one.

    Raises:
        UnreadableAnswer: the content is anything else.
    """
    return _trace_of(*read_safetensors(content))


def read_traces(content: bytes) -> list[Trace]:
    """Read the traces of several texts from a safetensors answer.

    Raises:
        UnreadableAnswer: the content is anything else.
    """
    arrays, members = read_safetensors(content)
    arrays_by_text: list[dict[str, NamedArray]] = [{} for _ in members["traces"]]
    for name, array in arrays.items():
        number, _, site = name.partition(".")
        arrays_by_text[int(number)][site] = array
    return [
        _trace_of(text_arrays, facts)
        for text_arrays, facts in zip(arrays_by_text, members["traces"], strict=True)
    ]


def _trace_of(arrays: Mapping[str, NamedArray], members: Mapping[str, Any]) -> Trace:
    target, heads = members["target_tokens"], members["heads"]
    return Trace(
        **{name: members[name] for name in _FIELDS},
        tokens=_TOKENS.validate_python(members["tokens"]),
        target_tokens=None if target is None else _TOKENS.validate_python(target),
        heads=None if heads is None else tuple(heads),
        resolution=members.get("resolution"),
        queries=tuple(members["queries"]) if members.get("queries") else None,
        timings={name.removesuffix("_ms"): took for name, took in members["timings"].items()},
        tensors={name: array for name, array in arrays.items() if not name.startswith(_PREFIX)},
        analyses=Analyses(
            (name, Analysis(arrays=_arrays_of(name, arrays), metadata=metadata))
            for name, metadata in members["analyses"].items()
        ),
    )


def read_positional(content: bytes) -> Positional:
    """Read an encoding of positions from a safetensors answer.

    Raises:
        UnreadableAnswer: the content is anything else.
    """
    arrays, members = read_safetensors(content)
    sizes = {name: members[name] for name in ("scheme", "model", "length", "width", "heads")}
    return Positional(tensors=arrays, **sizes)


def read_safetensors(content: bytes) -> tuple[dict[str, NamedArray], dict[str, Any]]:
    """Return the arrays of a safetensors answer by name, and its other members.

    Arrays sent as uint16 are multiplied by their scale, packed triangles are restored to full
    arrays, and masked numbers are -inf.

    Raises:
        UnreadableAnswer: the content is not such a file, or needs a newer client.
    """
    try:
        sent = safetensors.numpy.load(content)
        end = _HEADER_BYTES + int.from_bytes(content[:_HEADER_BYTES], "little")
        header = json.loads(content[_HEADER_BYTES:end])
        members = {name: json.loads(text) for name, text in header["__metadata__"].items()}
        axes = members.pop("axes")
        scales, packed = members.pop("scale", {}), members.pop("packed", {})
        arrays = {  # in the order of capture, which the file itself does not keep
            name: NamedArray(
                tuple(named), _restored(sent[name], scales.get(name), packed.get(name))
            )
            for name, named in axes.items()
        }
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise UnreadableAnswer(
            f"the answer is not a safetensors file of Headlight: {error}"
        ) from error
    return arrays, members


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def read_json(kind: type[Answer]) -> Callable[[bytes], Answer]:
    """Return a reader of JSON answers of a type.

    The reader raises `UnreadableAnswer` if the JSON does not have that type.
    """

    def read(content: bytes) -> Answer:
        try:
            answer: Answer = _adapter(kind).validate_json(content)
        except ValueError as error:
            raise UnreadableAnswer(f"the answer is not one of Headlight's: {error}") from error
        return answer

    return read


_read_result = read_json(ExperimentResult)


def events_of(lines: Iterable[str], kinds: EventKinds = GENERATION) -> Iterator[Any]:
    """Yield the events of a stream of Server-Sent Events, whose data have these types by name.

    Raises:
        ProblemError: the stream reports an error.
        UnreadableAnswer: it breaks off, or holds anything else.
    """
    decoder = _EventDecoder(kinds)
    for line in lines:
        if event := decoder.feed(line):
            yield event
    decoder.close()


async def async_events_of(lines: AsyncIterable[str], kinds: EventKinds) -> AsyncIterator[Any]:
    """Yield the events as `events_of` does, from lines that arrive asynchronously."""
    decoder = _EventDecoder(kinds)
    async for line in lines:
        if event := decoder.feed(line):
            yield event
    decoder.close()


class _EventDecoder:
    """Assembles lines into events: https://html.spec.whatwg.org/#event-stream-interpretation.

    httpx-sse was considered: it would do the ten lines of `feed`, and nothing of the end and the
    errors of a stream.
    """

    def __init__(self, kinds: EventKinds) -> None:
        self.kinds = kinds
        self.name = ""
        self.data: list[str] = []
        self.is_ended = False

    def feed(self, line: str) -> Event | None:
        """Take one line; an empty line completes an event."""
        field, _, value = line.partition(":")
        match field:
            case "event":
                self.name = value.strip()
            case "data":
                self.data.append(value.removeprefix(" "))
            case "" if not line and self.data:
                return self._event()
        return None

    def close(self) -> None:
        """Check that the stream came to its end."""
        if not self.is_ended:
            raise UnreadableAnswer("the stream broke off before its end")

    def _event(self) -> Event:
        name, text = self.name, "\n".join(self.data)
        self.name, self.data = "", []
        try:
            if name == "error":
                raise problem_error(json.loads(text))
            event: Event = self.kinds[name].model_validate_json(text)
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableAnswer(
                f"the stream holds an unknown event {name!r}: {error}"
            ) from error
        self.is_ended = name == "end"
        return event


def _arrays_of(analysis: str, arrays: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    prefix = f"{_PREFIX}{analysis}."
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _restored(
    array: NDArray[Any], scale: float | None, packed: Mapping[str, Any] | None
) -> NDArray[Any]:
    """Return the array as it was before it was scaled and its lower triangle was packed."""
    triangle = array if scale is None else array * np.float32(scale)
    if packed is None:
        return triangle
    if packed["packed"] != LOWER_TRIANGLE:
        raise ValueError(f"an array is packed as {packed['packed']!r}; a newer client can read it")
    fill = -np.inf if packed["fill"] is None else packed["fill"]
    whole = np.full(packed["shape"], fill, triangle.dtype)
    rows, columns = np.tril_indices(whole.shape[-1])
    whole[..., rows, columns] = triangle
    return whole
