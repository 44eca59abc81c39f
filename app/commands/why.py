"""`headlight why`: from a predicted word backwards, why each head looked where it did."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from headlight.commands.options import AsJson, Device, ModelsDir, Precision, Server
from headlight.commands.output import say
from headlight.commands.parsing import Commands, option

app = Commands()


@app.command()
def why(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    text: Annotated[str, typer.Argument(help="The text.", metavar="TEXT")],
    target: Annotated[str | None, option("The target of an encoder–decoder.", "TEXT")] = None,
    position: Annotated[int | None, option("Of the prediction.", "N", min=0)] = None,
    token: Annotated[str | None, option("The token to explain.", "TEXT")] = None,
    against: Annotated[str | None, option("The token to compare it with.", "TEXT")] = None,
    as_json: AsJson = False,
    server: Server = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Say which head spoke for the next word, and why it looked where it did, step by step.

    Each step has its share of the sum that it is a part of, and what is left without it.
    """
    options = locals()
    from headlight.client.thread import read_why
    from headlight.commands.backend import chosen_backend, ending_with_its_reader, request_of
    from headlight.schemas import JSON, SAFETENSORS
    from headlight.schemas.traces import TraceRequest

    asked = {"position": position, "token": token, "against": against}
    members = {
        "model": model,
        "text": text,
        "target": target,
        "capture": [],
        "analyses": ["attention_thread"],
        "logit_difference": {name: each for name, each in asked.items() if each is not None},
    }
    given = {name: each for name, each in members.items() if each is not None}
    with chosen_backend(options, is_long=False) as backend:
        request = request_of(TraceRequest, given, backend, {})
        with ending_with_its_reader():
            if as_json:
                typer.echo(backend.answer(request, JSON).decode())
                return
            say(Text(str(read_why(backend.answer(request, SAFETENSORS)))))
