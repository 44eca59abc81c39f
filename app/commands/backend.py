"""Models in this process or on a server, as `headlight trace` and `generate` ask them.

Both are asked with requests of the API, and raise errors with a message for a terminal.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from headlight.client import (
    Client,
    GenerationEvent,
    HeadlightError,
    InvalidRequest,
    NotFound,
    Unauthorized,
    endpoints,
)
from headlight.client.client import KEY_VARIABLE
from headlight.client.decode import events_of
from headlight.commands.output import progress
from headlight.commands.parsing import (
    UsageError,
    option_of,
    request_errors,
    settings_of,
    settings_with_models,
)
from headlight.models.cards import model_answer
from headlight.models.model_registry import registry_of
from headlight.problems import Problem
from headlight.schemas.generation import GenerateRequest
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import encode
from headlight.settings import Settings, variable_of
from headlight.tracing.generation import Generator, advance
from headlight.tracing.service import trace_now

Form = TypeVar("Form", bound=BaseModel)

SHORT_SECONDS, LONG_SECONDS = 60.0, 900.0
"""How long a server may take for a short and for a long text."""

_LOCAL_OPTIONS = ("device", "precision", "models_dir")


def request_of(
    form: type[Form], members: dict[str, Any], backend: Backend, flags: Mapping[str, str]
) -> Form:
    """Return a request of the members; its model may be named by a folder.

    Raises:
        UsageError: a member is wrong.
    """
    for name in ("model", "reward"):
        if model := members.get(name):
            members[name] = backend.find(model)
    try:
        return form(**members)
    except ValidationError as error:
        raise UsageError(request_errors(error, members, flags)) from error


class Local:
    """Traces in this process.

    Every method raises UsageError if the request breaks a rule, and ValueError if it fails.

    Raises:
        ValueError: the device does not exist here.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.registry = registry_of(settings)

    def find(self, model: str) -> str:
        """Return the id of a model, given its id or its folder; an id takes precedence."""
        registry, folder = self.registry, Path(model)
        if model in registry.ids or not folder.is_dir():
            return model
        folder = folder.resolve()
        registry.default = folder.name  # a fault of it is raised, so the registry logs no warning
        registry.add(folder)
        return folder.name

    def name_of(self, request: TraceRequest) -> str:
        """Return the id of the model that a request means."""
        with _plain_errors():
            return self.registry.describe(request.model).id

    def answer(self, request: TraceRequest, media_type: str) -> bytes:
        """Return the body of the API's answer."""
        sent_as = ResponseFormat(
            media_type=media_type, dtype=request.dtype, triangle=request.triangle
        )
        with _plain_errors(), progress("reading") as on_progress:
            tell = on_progress if request.is_observed else (lambda _: None)
            return encode(trace_now(request, self.registry, self.settings, tell), sent_as)

    def events(self, request: GenerateRequest) -> Iterator[GenerationEvent]:
        """Yield the events of a text that is continued."""

        def parts() -> Iterator[bytes]:
            generation, begun = Generator(self.registry, self.settings, lambda _: None).begin(
                request
            )
            yield begun
            while (event := next(advance([generation]))[1]) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
            yield generation.end()

        with _plain_errors():
            yield from events_of(line.decode() for part in parts() for line in part.split(b"\n"))

    def card(self, model: str) -> Mapping[str, Any]:
        """Return a model's card; a foreign model is loaded, for its sites."""
        with _plain_errors():
            if self.registry.is_foreign(model):
                self.registry.checkpoint(model)
            description, status = self.registry.describe(model), self.registry.status(model)
            return model_answer(description, status).model_dump(mode="json")


class Remote:
    """Asks a server; with the methods and errors of `Local`. The caller closes the client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def find(self, model: str) -> str:
        """Return the id itself."""
        return model

    def name_of(self, request: TraceRequest) -> str:
        """Return the id of the model that a request means, or the server's default."""
        with _plain_errors():
            return request.model or str(self.client.send(endpoints.models()).json()["default"])

    def answer(self, request: TraceRequest, media_type: str) -> bytes:
        """Return the body of the server's answer."""
        call = endpoints.trace(**request.model_dump(mode="json", exclude_unset=True))
        with _plain_errors():
            return self.client.send(replace(call, accept=media_type)).content

    def events(self, request: GenerateRequest) -> Iterator[GenerationEvent]:
        """Yield the server's events of a text that is continued."""
        with _plain_errors():
            yield from self.client.generate(**request.model_dump(exclude_unset=True))

    def card(self, model: str) -> Mapping[str, Any]:
        """Return a model's card."""
        with _plain_errors():
            card: dict[str, Any] = self.client.send(endpoints.model(model)).json()
            return card


Backend: TypeAlias = Local | Remote


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise the errors of the server and the client with a message for a terminal."""
    try:
        yield
    except Problem as problem:
        kind = UsageError if problem.status_code < 500 else ValueError
        raise kind(problem.detail) from problem
    except ValueError as error:  # a text with a lone surrogate
        raise UsageError(str(error)) from error
    except (InvalidRequest, NotFound) as error:
        raise UsageError(error.detail) from error
    except Unauthorized as error:
        raise ValueError(_key_error(error)) from error
    except HeadlightError as error:
        raise ValueError(getattr(error, "detail", str(error))) from error


def _key_error(error: Unauthorized) -> str:
    if error.kind == "key-missing":
        return f"the server requires an API key; set {KEY_VARIABLE}"
    return f"{error.detail}; the key in {KEY_VARIABLE} was sent"


@contextmanager
def chosen_backend(options: Mapping[str, Any], *, is_long: bool) -> Iterator[Backend]:
    """Yield a server, if one is named, or this process."""
    server, local = options["server"], {name: options[name] for name in _LOCAL_OPTIONS}
    if server is None:
        yield Local(settings_with_models(**local))
        return
    if given := [option_of(name) for name, value in local.items() if value is not None]:
        raise UsageError(f"{' and '.join(given)} cannot be combined with --server")
    try:
        client = Client(server, timeout=LONG_SECONDS if is_long else SHORT_SECONDS)
    except ValueError as error:  # the address, or the key of the environment
        raise UsageError(str(error)) from error
    with client:
        yield Remote(client)


def text_of(options: Mapping[str, Any], *, is_observed: bool) -> str:
    """Return the text of the command, of standard input or of a file.

    Raises:
        UsageError: there is none or more than one, or it is too long or not UTF-8.
        OSError: the file cannot be read.
    """
    text: str | None = options["text"]
    file: Path | None = options["file"]
    if (text is None) == (file is None):
        raise UsageError("give either a text or --file")
    name = "max_long_characters" if is_observed else "max_characters"
    limit = max(getattr(settings_of(), name), settings_of().max_characters)
    if file is not None:
        with file.open("rb") as opened:
            return _read(opened, str(file), name, limit)
    if text != "-":
        return text or ""
    return _read(sys.stdin.buffer, "standard input", name, limit)


def _read(binary: BinaryIO, source: str, name: str, limit: int) -> str:
    """Return a text, read only up to the length that is allowed."""
    reader = io.TextIOWrapper(binary, encoding="utf-8", newline="")
    try:
        text = reader.read(limit + 3)  # one more than allowed, and a line break
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8") from error
    finally:
        reader.detach()
    text = text.removesuffix("\n").removesuffix("\r")
    if len(text) > limit:
        raise UsageError(
            f"{source} exceeds the {limit:,} characters that are allowed; "
            f"send a shorter text, or raise {variable_of(name)}"
        )
    return text


@contextmanager
def ending_with_its_reader() -> Iterator[None]:
    """End the command when the reader of its output, such as `head`, has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
