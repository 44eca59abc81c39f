"""`headlight chat`: a conversation with a model, an answer for each line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headlight.commands.options import Device, ModelsDir, Precision, Server
from headlight.commands.parsing import Commands, option

app = Commands()


@app.command()
def chat(
    model: Annotated[str, typer.Argument(help="The model's id, or its folder.", metavar="MODEL")],
    system: Annotated[
        str | None, option("A system prompt before the first message.", "TEXT")
    ] = None,
    n_tokens: Annotated[int, option("The largest number of tokens of an answer.", "N")] = 200,
    temperature: Annotated[
        float, option("Divides the logits; 0 always takes the likeliest token.", "T")
    ] = 0.0,
    server: Server = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Talk with a model: each line that is typed is a message, until the end of the input."""
    options = locals()
    from headlight.commands.backend import chosen_backend, ending_with_its_reader, request_of
    from headlight.commands.generate import write_text
    from headlight.schemas.generation import GenerateRequest

    messages = [{"role": "system", "content": system}] if system else []
    with chosen_backend(options, is_long=False) as backend, ending_with_its_reader():
        members = {"model": backend.find(model), "n_tokens": n_tokens, "temperature": temperature}
        while (line := _next_line()) is not None:
            messages.append({"role": "user", "content": line})
            request = request_of(GenerateRequest, {**members, "messages": messages}, backend, {})
            answer = write_text("", backend.events(request), ())
            messages.append({"role": "assistant", "content": answer})


def _next_line() -> str | None:
    """Return the next line that is typed or piped in; None: the input has ended."""
    try:
        return input("> " if sys.stdin.isatty() else "")
    except EOFError:
        return None
