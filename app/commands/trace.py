"""The work of `headlight trace` and `generate`: a text here or on a server, printed or in files.

Their options are in `app/cli.py`.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, TypeAlias, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from headlight import saved_page
from headlight.client import (
    Client,
    Ended,
    GenerationEvent,
    HeadlightError,
    InvalidRequest,
    NotFound,
    Started,
    TokenWritten,
    Trace,
    Unauthorized,
    endpoints,
    read_trace,
)
from headlight.client.client import KEY_VARIABLE
from headlight.client.decode import events_of
from headlight.commands.output import (
    STANDARD_OUTPUT,
    check,
    console,
    csv_lines,
    notes,
    show,
    writing,
)
from headlight.commands.parsing import (
    UsageError,
    option_of,
    request_errors,
    settings_of,
    settings_with_models,
)
from headlight.errors import Problem
from headlight.models.registry import registry_of
from headlight.routes.models import model_answer
from headlight.schemas import JSON, SAFETENSORS
from headlight.schemas.generation import GenerateRequest
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import encode
from headlight.settings import Settings, variable_of
from headlight.tracing.generation import Generator, advance
from headlight.tracing.service import trace_now

Form = TypeVar("Form", bound=BaseModel)

N_SHOWN = 3
FILE_RESOLUTION = 128
SHORT_SECONDS, LONG_SECONDS = 60.0, 900.0
"""How long a server may take for a short and for a long text."""

_LOCAL_OPTIONS = ("device", "precision", "models_dir")


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The files to write; without any, a table is printed."""

    as_json: bool = False
    as_csv: bool = False
    out: Path = STANDARD_OUTPUT
    safetensors: Path | None = None
    html: Path | None = None
    force: bool = False

    def check(self) -> None:
        """Raise `UsageError` or `DestinationError` for what can be checked before the pass."""
        if self.as_json and self.as_csv:
            raise UsageError("choose one of --json and --csv")
        is_text = self.as_json or self.as_csv
        if self.out != STANDARD_OUTPUT and not is_text:
            raise UsageError("--out is the file for --json or --csv; add one of them")
        files = [
            path for path in (self.out if is_text else None, self.safetensors, self.html) if path
        ]
        places = {path if path == STANDARD_OUTPUT else path.resolve() for path in files}
        if len(places) < len(files):
            raise UsageError("two outputs have the same destination; name another file for one")
        for path in files:
            check(path, is_forced=self.force)


def run_trace(options: Mapping[str, Any]) -> None:
    """Trace a text and print the result or write it to files; `options` are the command's.

    Raises:
        UsageError: an option is wrong.
        ValueError, OSError: the trace failed, or a file cannot be written.
    """
    outputs = Outputs(**{field.name: options[field.name] for field in fields(Outputs)})
    outputs.check()
    members = _members_of(TraceRequest, options)
    if options["file"] is not None and not members.keys() & {"capture", "resolution", "queries"}:
        members["resolution"] = FILE_RESOLUTION
    is_observed = bool(members.keys() & {"resolution", "queries"})
    members["text"] = _text(options, is_observed=is_observed)
    if edits := members.get("edits"):
        members["edits"] = _json(edits, "--edits")
    with _backend(options, is_long=is_observed) as backend:
        request = _request(TraceRequest, members, backend)
        with _ending_with_its_reader():
            _write_outputs(request, backend, outputs)


def run_generate(options: Mapping[str, Any]) -> None:
    """Print a text and its continuation token by token; `options` are the command's.

    Raises:
        UsageError: an option is wrong.
        ValueError: the model is damaged, or the server cannot be reached.
    """
    members = _members_of(GenerateRequest, options)
    if "reward" in members and members.get("best_of", 1) == 1:
        raise UsageError("--reward rates the texts of --best-of; say how many with --best-of 8")
    sampling = [name for name in ("temperature", "top_k", "top_p") if name in members]
    if members.get("beams", 1) > 1 and sampling:
        option = "--" + sampling[0].replace("_", "-")
        raise UsageError(f"--beams searches and does not sample; leave out {option}")
    with _backend(options, is_long=False) as backend:
        request = _request(GenerateRequest, members, backend)
        with _ending_with_its_reader():
            _write_text(members["text"], backend.events(request), request.stop)


def _members_of(form: type[BaseModel], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are given and that a request has."""
    return {name: options[name] for name in form.model_fields if options.get(name) is not None}


def _request(form: type[Form], members: dict[str, Any], backend: Backend) -> Form:
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
        raise UsageError(request_errors(error, members)) from error


def _write_text(text: str, events: Iterator[GenerationEvent], stop: Sequence[str]) -> None:
    """Print tokens as they arrive; hold back incomplete UTF-8, and what may begin a stop string."""
    written, held, is_whole = "", "", True
    for event in events:
        piece = text if isinstance(event, Started) else ""
        if isinstance(event, TokenWritten) and not event.is_special:
            is_whole = is_whole and r"\x" not in event.text
            piece, held = _without_stop(held + event.text, stop) if is_whole else ("", held)
            written += piece
        elif isinstance(event, Ended):
            piece = event.text.removeprefix(written) + "\n"
        typer.echo(piece, nl=False)


def _without_stop(text: str, stop: Sequence[str]) -> tuple[str, str]:
    """Divide a text into what can be printed and its end, which a stop string may begin with."""
    ends = [text.find(each) for each in stop if each in text]
    ends += [
        len(text) - n
        for each in stop
        for n in range(1, min(len(each), len(text)) + 1)
        if text.endswith(each[:n])
    ]
    end = min(ends, default=len(text))
    return text[:end], text[end:]


def _write_outputs(request: TraceRequest, backend: Backend, outputs: Outputs) -> None:
    if outputs.as_json:
        _write(outputs.out, outputs, [backend.answer(request, JSON), b"\n"])
    if outputs.as_csv:
        trace = read_trace(backend.answer(request, SAFETENSORS))
        _write(outputs.out, outputs, (lines.encode() for lines in csv_lines(trace)))
    if outputs.safetensors:
        _write(outputs.safetensors, outputs, [backend.answer(request, SAFETENSORS)])
    if outputs.html:
        _write(outputs.html, outputs, [_page(request, backend).encode()])
    if not (outputs.as_json or outputs.as_csv or outputs.safetensors or outputs.html):
        if request.is_observed:
            _print_arrays(read_trace(backend.answer(request, SAFETENSORS)))
            return
        request = request.model_copy(update={"analyses": ["next_token"]})
        trace = read_trace(backend.answer(request, SAFETENSORS))
        _print_trace(trace, backend.card(trace.model)["kind"])


def _write(path: Path, outputs: Outputs, parts: Iterable[bytes]) -> None:
    with writing(path, is_forced=outputs.force) as file:
        for part in parts:
            file.write(part)
    if path != STANDARD_OUTPUT:
        notes.print(f"the trace is in {path}", markup=False, soft_wrap=True)


def _page(request: TraceRequest, backend: Backend) -> str:
    """Return the saved page: all views of the text, or those of what was captured."""
    if request.heads is not None:
        raise UsageError("--html shows all heads of a layer; leave --heads out")
    card = backend.card(backend.name_of(request))
    everything, *less = saved_page.whole_requests(request, card)
    try:
        answer = backend.answer(everything, SAFETENSORS)
    except UsageError:  # a long text has too many numbers for every view
        if not less:
            raise
        answer = backend.answer(less[0], SAFETENSORS)
    trace = read_trace(answer)
    if not any(site.endswith(("attention.weights", ".mean_map")) for site in trace):
        raise UsageError("--html shows attention; add --capture '*.self_attention.weights'")
    further = [
        (ask, backend.answer(each, SAFETENSORS))
        for ask, each in saved_page.further_requests(request, card, trace)
    ]
    further += saved_page.positional_answers(card, trace)
    edits = [edit.model_dump(exclude_none=True, by_alias=True) for edit in request.edits or ()]
    archive = saved_page.Archive(card=card, whole=answer, further=further)
    return saved_page.render(archive, edits)


def _print_trace(trace: Trace, kind: str) -> None:
    next_token = trace.analyses["next_token"]
    heading = "likely in this place" if kind == "encoder" else "likely to come next"
    texts = [repr(text) for text in (trace.text, trace.target) if text is not None]
    console.print(Text(f"{trace.model} reads {', then '.join(texts)}"), soft_wrap=True)
    table = Table("", "token", heading)
    probabilities = next_token["probabilities"]
    for place, token in enumerate(trace.target_tokens or trace.tokens):
        likeliest = zip(next_token["texts"][place][:N_SHOWN], probabilities[place], strict=False)
        shown = "   ".join(f"{_quoted(text)} {_percent(float(p))}" for text, p in likeliest)
        table.add_row(str(place), Text(_quoted(token.text)), Text(shown))
    show(table)
    _print_sizes(trace)


def _print_arrays(trace: Trace) -> None:
    """Print the length of a long text, and the arrays of its trace."""
    texts = [tokens for tokens in (trace.tokens, trace.target_tokens) if tokens is not None]
    lengths = " and then ".join(f"{len(tokens):,} tokens" for tokens in texts)
    console.print(Text(f"{trace.model} reads {lengths}"), soft_wrap=True)
    _print_sizes(trace)


def _print_sizes(trace: Trace) -> None:
    for site, array in trace.tensors.items():
        show(f"{site}  {array.sizes}")


def _quoted(text: str) -> str:
    """Return the text of a token in quotes; partial characters are escaped already."""
    return repr(text).replace(r"\\x", r"\x")


def _percent(probability: float) -> str:
    """Return a probability in whole percent, never rounded to 0 or 100."""
    if probability < 0.005:
        return "<1 %"
    return ">99 %" if probability > 0.995 else f"{100 * probability:.0f} %"


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
        with _plain_errors(), _progress(is_shown=request.is_observed) as on_progress:
            return encode(trace_now(request, self.registry, self.settings, on_progress), sent_as)

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


@contextmanager
def _progress(*, is_shown: bool) -> Iterator[Callable[[float], object]]:
    """Yield a bar on the terminal, if a pass takes longer than a second."""
    began = monotonic()
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("reading", total=1.0, visible=False)

        def report(share: float) -> None:
            is_slow = is_shown and monotonic() - began > 1
            bar.update(task, completed=share, visible=is_slow)

        yield report


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
def _backend(options: Mapping[str, Any], *, is_long: bool) -> Iterator[Backend]:
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


def _text(options: Mapping[str, Any], *, is_observed: bool) -> str:
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


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{option} is not JSON: {error}") from error


@contextmanager
def _ending_with_its_reader() -> Iterator[None]:
    """End the command when the reader of its output, such as `head`, has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
