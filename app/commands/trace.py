"""The command `headlight trace`: one text read, here or by a server, and printed or written.

What it needs is imported when it runs, so that `--help` does not wait for PyTorch.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from headlight.commands.options import (
    Device,
    Model,
    ModelsDir,
    Precision,
    check_models_dir,
    fail,
    settings_of,
)
from headlight.commands.output import in_words
from headlight.commands.validation_messages import option_of, request_mistakes

if TYPE_CHECKING:
    from headlight.commands.backends import Source


def trace(
    text: Annotated[str, typer.Argument(help="What to read; - reads standard input.")],
    model: Model = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="What a translator's decoder reads.", show_default="the model's translation"
        ),
    ] = None,
    capture: Annotated[
        list[str] | None, typer.Option(help="Site or glob; give it again for more.")
    ] = None,
    layers: Annotated[list[int] | None, typer.Option(help="Only this layer.")] = None,
    heads: Annotated[list[int] | None, typer.Option(help="Only this head.")] = None,
    analyses: Annotated[
        list[str] | None,
        typer.Option(help="A quantity computed from the trace, such as rollout; again for more."),
    ] = None,
    edits: Annotated[
        str | None,
        typer.Option(
            help="What the pass changes, as the API takes it: "
            """'[{"kind": "heads_off", "heads": [3], "layer": 1}]'.""",
            metavar="JSON",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            help="float32, or uint16 for half the bytes of weights.",
            show_default="float32",
            metavar="NAME",
        ),
    ] = None,
    triangle: Annotated[
        bool, typer.Option("--triangle", help="Leave out what causal attention cannot see.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[
        bool,
        typer.Option(
            "--csv",
            help="Print a table with a line for each number: its place on every axis and, as in "
            "query_token, the token there.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="A file for --json or --csv.", metavar="FILE")] = Path(
        "-"
    ),
    safetensors: Annotated[
        Path | None, typer.Option(help="Write a safetensors file.", metavar="FILE")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page that shows all heads and opens offline.", metavar="FILE"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over files.")] = False,
    server: Annotated[
        str | None,
        typer.Option(
            help="Ask this server instead of a model here; HEADLIGHT_API_KEY is its key.",
            metavar="URL",
        ),
    ] = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Read a text and print what the model expects next, or write the whole trace.

    FILE may be - for standard output. Of standard input one line break at the end is left out.
    """
    from pydantic import ValidationError

    from headlight.commands.terminal import Outputs, write_trace
    from headlight.schemas.traces import TraceRequest

    asked: dict[str, Any] = {
        "text": text if text != "-" else _standard_input(),
        "target": target,
        "model": model,
        "capture": capture,
        "layers": layers,
        "heads": heads,
        "analyses": analyses,
        "dtype": dtype,
        "triangle": triangle or None,
    }
    outputs = Outputs(
        as_json=as_json,
        as_csv=as_csv,
        out=out,
        safetensors=safetensors,
        html=html,
        is_forced=force,
    )
    here = {"device": device, "precision": precision, "models_dir": models_dir}
    try:
        outputs.check()
        asked["edits"] = edits and _json(edits, "--edits")
        order = TraceRequest(**{name: value for name, value in asked.items() if value is not None})
        with _source(server, here) as source:
            write_trace(order, source, outputs)
    except ValidationError as error:
        fail(request_mistakes(error, asked))
    except BrokenPipeError:
        _leave_quietly()
    except (ValueError, OSError) as error:
        fail(in_words(error))


@contextmanager
def _source(server: str | None, here: dict[str, Any]) -> Iterator[Source]:
    """Who traces: a server, where one is named, or a model in this process."""
    if server is None:
        from headlight.commands.backends import Here

        settings = settings_of(**here)
        check_models_dir(settings)
        yield Here(settings)
        return
    if given := [option_of(name) for name, value in here.items() if value is not None]:
        told = " and ".join(given)
        raise ValueError(f"{told} cannot go with --server: a server decides that itself")
    from headlight.client import Client
    from headlight.commands.backends import There

    with Client(server) as client:
        yield There(client)


def _standard_input() -> str:
    """The text that is piped in, read no further than a text may be long."""
    most = settings_of().max_characters
    reader = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", newline="")
    try:
        text = reader.read(most + 3)  # one more than allowed, and a line break
    except UnicodeDecodeError:
        fail("standard input is not UTF-8")
    finally:
        reader.detach()
    text = text.removesuffix("\n").removesuffix("\r")
    if len(text) > most:
        fail(
            f"standard input holds more than the {most:,} characters that are allowed; "
            "send a shorter text, or raise HEADLIGHT_MAX_CHARACTERS"
        )
    return text


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{what} is not JSON: {error}") from error


def _leave_quietly() -> NoReturn:
    """Whoever read our output has read enough, `head` for one; what is left goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(1)
