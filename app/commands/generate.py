"""`headlight generate`: a text that a model continues, printed token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headlight.commands.options import Device, ModelsDir, Precision, Server
from headlight.commands.parsing import Commands, UsageError, option, option_of
from headlight.commands.requests import flags_of, given, of_request

if TYPE_CHECKING:
    from headlight.client import GenerationEvent

app = Commands()


@app.command(cls=of_request("headlight.schemas.generation:GenerateRequest"))
def generate(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(help="The beginning of the text.", metavar="TEXT")],
    n_tokens: Annotated[int, option("The largest number of new tokens.", "N")] = 50,
    server: Server = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Continue a text and print it token by token."""
    options = locals()
    from headlight.commands.backend import chosen_backend, ending_with_its_reader, request_of
    from headlight.schemas.generation import GenerateRequest

    members = {"text": text, "n_tokens": n_tokens, **given(ctx)}
    if "reward" in members and members.get("best_of", 1) == 1:
        raise UsageError("--reward rates the texts of --best-of; say how many with --best-of 8")
    sampling = [name for name in ("temperature", "top_k", "top_p") if name in members]
    if members.get("beams", 1) > 1 and sampling:
        raise UsageError(
            f"--beams searches and does not sample; leave out {option_of(sampling[0])}"
        )
    with chosen_backend(options, is_long=False) as backend:
        request = request_of(GenerateRequest, members, backend, flags_of(ctx))
        with ending_with_its_reader():
            write_text(members["text"], backend.events(request), request.stop)


def write_text(text: str, events: Iterator[GenerationEvent], stop: Sequence[str]) -> str:
    """Print tokens as they arrive, and return their text.

    Incomplete UTF-8 is held back, and what may begin a stop string.
    """
    from headlight.client import Ended, Started, TokenWritten

    written, held, is_whole, whole = "", "", True, ""
    for event in events:
        piece = text if isinstance(event, Started) else ""
        if isinstance(event, TokenWritten) and not event.is_special:
            is_whole = is_whole and r"\x" not in event.text
            piece, held = _without_stop(held + event.text, stop) if is_whole else ("", held)
            written += piece
        elif isinstance(event, Ended):
            whole = event.text
            piece = whole.removeprefix(written) + "\n"
        typer.echo(piece, nl=False)
    return whole


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
