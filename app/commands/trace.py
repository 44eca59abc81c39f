"""`headlight trace`: a text that a model reads, here or on a server, printed or in files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from headlight.commands.options import AsJson, Device, Force, ModelsDir, Precision, Server
from headlight.commands.output import STANDARD_OUTPUT, check, csv_lines, note, say, show, writing
from headlight.commands.parsing import Commands, UsageError, one_format, option
from headlight.commands.requests import flags_of, given, of_request

if TYPE_CHECKING:
    from headlight.client import Trace
    from headlight.commands.backend import Backend
    from headlight.schemas.traces import TraceRequest

app = Commands()

N_SHOWN = 3
FILE_RESOLUTION = 128


@app.command(cls=of_request("headlight.schemas.traces:TraceRequest"))
def trace(
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(help="The text; - reads standard input.", metavar="TEXT")
    ] = None,
    file: Annotated[
        Path | None,
        option(
            "Read the text from a file, which may be a book. Without --capture, --resolution and "
            "--queries, the maps of attention in 128 bins a side are traced.",
            "FILE",
        ),
    ] = None,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool,
        option(
            "Print a table with one line for each number: its index on every axis, and the "
            "tokens there in columns such as query_token.",
            name="--csv",
        ),
    ] = False,
    out: Annotated[Path, option("The file for --json or --csv.", "FILE")] = Path("-"),
    safetensors: Annotated[
        Path | None,
        option("Write a safetensors file; `headlight.read_trace(bytes)` reads it.", "FILE"),
    ] = None,
    html: Annotated[
        Path | None, option("Write a page that shows all heads and opens offline.", "FILE")
    ] = None,
    force: Force = False,
    server: Server = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Run a model on a text and show what it computed.

    Without an output option, a table shows the likely next tokens and the captured arrays. FILE
    may be - for standard output. One line break at the end of standard input is ignored.
    """
    options = locals()
    from headlight.commands.backend import (
        chosen_backend,
        ending_with_its_reader,
        request_of,
        text_of,
    )
    from headlight.schemas.traces import TraceRequest

    outputs = Outputs(**{field.name: options[field.name] for field in fields(Outputs)})
    outputs.check()
    members = given(ctx)
    if options["file"] is not None and not members.keys() & {"capture", "resolution", "queries"}:
        members["resolution"] = FILE_RESOLUTION
    is_observed = bool(members.keys() & {"resolution", "queries"})
    members["text"] = text_of(options, is_observed=is_observed)
    with chosen_backend(options, is_long=is_observed) as backend:
        request = request_of(TraceRequest, members, backend, flags_of(ctx))
        with ending_with_its_reader():
            _write_outputs(request, backend, outputs)


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
        one_format(as_json=self.as_json, as_csv=self.as_csv, out=self.out)
        text = self.out if self.as_json or self.as_csv else None
        files = [path for path in (text, self.safetensors, self.html) if path]
        places = {path if path == STANDARD_OUTPUT else path.resolve() for path in files}
        if len(places) < len(files):
            raise UsageError("two outputs have the same destination; name another file for one")
        for path in files:
            check(path, is_forced=self.force)


def _write_outputs(request: TraceRequest, backend: Backend, outputs: Outputs) -> None:
    from headlight.client import read_trace
    from headlight.schemas import JSON, SAFETENSORS

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
        card = backend.card(backend.name_of(request))
        if card.get("predicts", "token") == "token":
            request = request.model_copy(update={"analyses": ["next_token"]})
        trace = read_trace(backend.answer(request, SAFETENSORS))
        if "next_token" not in trace.analyses:
            _print_output(trace)
        else:
            _print_trace(trace, card["kind"])


def _write(path: Path, outputs: Outputs, parts: Iterable[bytes]) -> None:
    with writing(path, is_forced=outputs.force) as file:
        for part in parts:
            file.write(part)
    if path != STANDARD_OUTPUT:
        note(f"the trace is in {path}")


def _page(request: TraceRequest, backend: Backend) -> str:
    """Return the saved page: all views of the text, or those of what was captured."""
    from headlight import saved_page
    from headlight.client import read_trace
    from headlight.schemas import SAFETENSORS

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
    say(Text(f"{trace.model} reads {', then '.join(texts)}"))
    table = Table("", "token", heading)
    probabilities = next_token["probabilities"]
    for place, token in enumerate(trace.target_tokens or trace.tokens):
        likeliest = zip(next_token["texts"][place][:N_SHOWN], probabilities[place], strict=False)
        shown = "   ".join(f"{_quoted(text)} {_percent(float(p))}" for text, p in likeliest)
        table.add_row(str(place), Text(_quoted(token.text)), Text(shown))
    show(table)
    _print_sizes(trace)


def _print_output(trace: Trace) -> None:
    """Print what a model that predicts no tokens puts out: a vector, a score, an answer."""
    say(Text(f"{trace.model} reads {trace.text!r}"))
    for name, analysis in trace.analyses.items():
        for part, value in analysis.items():
            is_array = hasattr(value, "shape")
            shown = f"{value.shape}  {value.ravel()[:N_SHOWN]} …" if is_array else repr(value)
            show(Text(f"{name}.{part}  {shown}"))
    _print_sizes(trace)


def _print_arrays(trace: Trace) -> None:
    """Print the length of a long text, and the arrays of its trace."""
    texts = [tokens for tokens in (trace.tokens, trace.target_tokens) if tokens is not None]
    lengths = " and then ".join(f"{len(tokens):,} tokens" for tokens in texts)
    say(Text(f"{trace.model} reads {lengths}"))
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
