"""What the command line prints of traces, and how it prints: on a terminal, or into a pipe."""

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from headlight.client import Trace, read_trace
from headlight.commands.backends import Source
from headlight.commands.csv_export import text_of
from headlight.commands.output import STANDARD_OUTPUT, check, writing
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import JSON, SAFETENSORS

console = Console(highlight=False)
notes = Console(highlight=False, stderr=True)

N_SHOWN = 3
WIDEST = 2_000
"""Characters of a line that nothing shows but a program reads."""


def show(*what: RenderableType) -> None:
    """Print for the eye on a terminal; elsewhere no line is wrapped or ends in blanks."""
    if console.is_terminal:
        console.print(*what, markup=False)
        return
    paper = io.StringIO()
    Console(file=paper, highlight=False, width=WIDEST).print(*what, markup=False)
    for line in paper.getvalue().splitlines():
        console.out(line.rstrip(), highlight=False)


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What becomes of a trace; where nothing is asked for, a table is printed."""

    as_json: bool = False
    as_csv: bool = False
    out: Path = STANDARD_OUTPUT
    safetensors: Path | None = None
    html: Path | None = None
    is_forced: bool = False

    def check(self) -> None:
        """Refuse what does not go together, or cannot be written, before anything is computed.

        Raises:
            ValueError: with what would do.
        """
        if self.as_json and self.as_csv:
            raise ValueError("choose one of --json and --csv")
        if self.out != STANDARD_OUTPUT and not (self.as_json or self.as_csv):
            raise ValueError("--out says where --json or --csv goes; give one of them, too")
        is_printed = self.out if self.as_json or self.as_csv else None
        files = [path for path in (is_printed, self.safetensors, self.html) if path]
        if len({path if path == STANDARD_OUTPUT else path.resolve() for path in files}) < len(
            files
        ):
            raise ValueError("two things cannot go to one place; name another file for one of them")
        for path in files:
            check(path, is_forced=self.is_forced)


def write_trace(order: TraceRequest, source: Source, outputs: Outputs) -> None:
    """Trace a text and print it, or write it to files.

    Args:
        order: what to trace.
        source: who traces it.
        outputs: what to print or write.

    Raises:
        ValueError: the request breaks a rule, or a file cannot be written; the message says which.
    """
    outputs.check()
    if outputs.as_json:
        _write(outputs.out, outputs, [source.answer(order, JSON), b"\n"])
    if outputs.as_csv:
        trace = read_trace(source.answer(order, SAFETENSORS))
        _write(outputs.out, outputs, (part.encode() for part in text_of(trace)))
    if outputs.safetensors:
        _write(outputs.safetensors, outputs, [source.answer(order, SAFETENSORS)])
    if outputs.html:
        _write(outputs.html, outputs, [_page(order, source).encode()])
    if not (outputs.as_json or outputs.as_csv or outputs.safetensors or outputs.html):
        wanted = order.model_copy(update={"analyses": ["next_token"]})
        trace = read_trace(source.answer(wanted, SAFETENSORS))
        _print_trace(trace, source.card(trace.model)["kind"])


def _write(path: Path, outputs: Outputs, parts: Iterable[bytes]) -> None:
    with writing(path, is_forced=outputs.is_forced) as file:
        for part in parts:
            file.write(part)
    if path != STANDARD_OUTPUT:
        notes.print(f"the trace is in {path}", markup=False, soft_wrap=True)


def _page(order: TraceRequest, source: Source) -> str:
    """The offline page, which shows whole layers and what their heads do."""
    from headlight.commands.html_export import offline_page

    if order.heads is not None:
        raise ValueError("--html shows all heads of a layer; leave --heads out")
    analyses = sorted({*order.wanted_analyses, "head_labels"})
    asked = {"analyses": analyses, "triangle": False}
    answer = source.answer(
        TraceRequest.model_validate({**order.model_dump(), **asked}), SAFETENSORS
    )
    trace = read_trace(answer)
    if not any(site.endswith("attention.weights") for site in trace):
        raise ValueError("--html shows attention; capture '*.self_attention.weights', too")
    edits = [edit.model_dump(exclude_none=True) for edit in order.edits or ()]
    return offline_page(answer, source.card(trace.model), trace, edits)


def _print_trace(trace: Trace, kind: str) -> None:
    found = trace.analyses["next_token"]
    expected = "what may stand here" if kind == "encoder" else "what may come next"
    texts = [repr(text) for text in (trace.text, trace.target) if text is not None]
    console.print(Text(f"{trace.model} reads {', then '.join(texts)}"), soft_wrap=True)
    table = Table("", "token", expected)
    probabilities = found["probabilities"]
    for place, token in enumerate(trace.target_tokens or trace.tokens):
        best = zip(found["texts"][place][:N_SHOWN], probabilities[place], strict=False)
        shown = "   ".join(f"{text!r} {_percent(float(p))}" for text, p in best)
        table.add_row(str(place), Text(repr(token.text)), Text(shown))
    show(table)
    for site, array in trace.tensors.items():
        sizes = zip(array.axes, array.data.shape, strict=True)
        show(f"{site}  {' '.join(f'{axis}={size}' for axis, size in sizes)}")


def _percent(probability: float) -> str:
    """A probability as a whole percentage that is never rounded to none or to certainty."""
    if probability < 0.005:
        return "<1 %"
    return ">99 %" if probability > 0.995 else f"{100 * probability:.0f} %"
