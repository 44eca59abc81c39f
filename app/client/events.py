"""What comes while a text is written on: an event for the start, for each token, for the end."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headlight.client.answers import read, read_tokens
from headlight.client.errors import UnreadableAnswer, problem_from
from headlight.model.trace import Token


@dataclass(frozen=True, kw_only=True)
class Started:
    """The text before the first new token."""

    model: str
    revision: str
    precision: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A token that could have come; `probability` is of being drawn."""

    id: int
    text: str
    probability: float
    model_probability: float


@dataclass(frozen=True, kw_only=True)
class AttentionRow:
    """What the query that predicted the token attended to: `data` by `axes`, layer head key."""

    axes: tuple[str, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    data: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ExpertsChosen:
    """Where one layer sent the query that predicted the token."""

    layer: int
    experts: tuple[int, ...]
    weights: tuple[float, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class TokenWritten:
    """One new token, and how the model came to it. `experts` is None where the model is dense."""

    index: int
    position: int
    id: int
    text: str
    is_special: bool
    probability: float
    model_probability: float
    rank: int
    is_forced: bool
    alternatives: tuple[Alternative, ...]
    attention: AttentionRow
    experts: tuple[ExpertsChosen, ...] | None


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Why no further token comes: `length`, `end_of_text`, `max_tokens` or `server_stopping`."""

    reason: str
    n_tokens: int
    text: str


Event: TypeAlias = Started | TokenWritten | Ended

BROKEN_OFF = "the stream broke off: the server went away in the middle of it"


def events_of(lines: Iterable[str]) -> Iterator[Event]:
    """The events of a stream of lines, as Server-Sent Events are sent.

    Raises:
        ProblemError: the stream says that something went wrong.
        UnreadableAnswer: it ends without an end, or holds what is no event.
    """
    reader = _Reader()
    for line in lines:
        if event := reader.take(line):
            yield event
    reader.finish()


async def async_events_of(lines: AsyncIterable[str]) -> AsyncIterator[Event]:
    """The same of lines that are waited for."""
    reader = _Reader()
    async for line in lines:
        if event := reader.take(line):
            yield event
    reader.finish()


class _Reader:
    """Puts lines together to events."""

    def __init__(self) -> None:
        self.name = ""
        self.data: list[str] = []
        self.is_ended = False

    def take(self, line: str) -> Event | None:
        """Read one line; an empty one ends an event."""
        field, _, value = line.partition(":")
        match field:
            case "event":
                self.name = value.strip()
            case "data":
                self.data.append(value.removeprefix(" "))
            case "" if not line and self.data:
                return self._event()
        return None

    def finish(self) -> None:
        """Say so, where the end did not come."""
        if not self.is_ended:
            raise UnreadableAnswer(BROKEN_OFF)

    def _event(self) -> Event:
        name, text = self.name, "\n".join(self.data)
        self.name, self.data = "", []
        try:
            return self._read(name, json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableAnswer(f"the stream holds what is no event: {error}") from error

    def _read(self, name: str, found: Mapping[str, Any]) -> Event:
        match name:
            case "start":
                return read(Started, {**found, "tokens": read_tokens(found["tokens"])})
            case "token":
                return _read_token(found)
            case "end":
                self.is_ended = True
                return read(Ended, found)
            case "error":
                raise problem_from(found)
        raise ValueError(f"{name!r} is unknown")


def _read_token(found: Mapping[str, Any]) -> TokenWritten:
    experts, row = found["experts"], found["attention"]
    data = np.array(row["data"], dtype=np.float32)
    nested = {
        "alternatives": tuple(read(Alternative, each) for each in found["alternatives"]),
        "attention": read(AttentionRow, {**row, "data": data}),
        "experts": experts and tuple(read(ExpertsChosen, each) for each in experts),
    }
    return read(TokenWritten, {**found, **nested})
