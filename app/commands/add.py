"""`headlight add` and `headlight remove`: models of the hub or of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headlight.commands.options import Files, ModelsDir
from headlight.commands.parsing import Commands, option, settings_of, settings_with_models

app = Commands()


@app.command()
def add(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder, a .gguf file, or a repository of huggingface.co as org/name or "
            "org/name@revision.",
            metavar="SOURCE",
        ),
    ],
    name: Annotated[str | None, option("The model's id.", "ID", "the name of the source")] = None,
    text: Annotated[
        Files, option("Sentences of yours to measure the heads on; repeat it for more.", "FILE")
    ] = None,
    heads: Annotated[
        bool, typer.Option("--heads/--no-heads", help="Measure the heads, and choose examples.")
    ] = True,
    models_dir: Annotated[
        Path | None,
        option("The directory to add it to.", "DIR", "headlight/models in the user's data"),
    ] = None,
) -> None:
    """Add a Hugging Face checkpoint, or a model of your own, to those that are served.

    Only safetensors, JSON and tokenizer files are fetched or copied, and no code is run. A
    self-check compares the model with Hugging Face's own attention and writes its card. Then its
    heads are measured on a few sentences, and go on to be in the background. An interrupted
    download continues when the command is run again.
    """
    from headlight.model.foreign import is_foreign, read_folder

    folder = Path(source).expanduser()
    if is_foreign(folder):
        read_folder(folder)  # refuses at once what its files decide: PyTorch takes seconds
    from headlight.commands.adding import add_model

    settings = settings_of(models_dir=models_dir)
    add_model(source, settings, name=name, text=text or [], measures_heads=heads)


@app.command()
def remove(
    model: Annotated[str, typer.Argument(help="The model's id.", metavar="ID")],
    models_dir: ModelsDir = None,
) -> None:
    """Remove a model that `headlight add` added, with its files."""
    from headlight.commands.adding import remove_model

    remove_model(model, settings_with_models(models_dir=models_dir))
