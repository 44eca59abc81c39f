"""`headlight profile`: what every head of a model does, measured on many sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from headlight.commands.options import Device, Files, ModelsDir
from headlight.commands.output import progress, show
from headlight.commands.parsing import (
    Commands,
    folder_of,
    option,
    settings_with_models,
    usage_errors,
)

app = Commands()


@app.command()
def profile(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    text: Annotated[
        Files,
        option("Held-out text, or held-out pairs for a translator; repeat it for more.", "FILE"),
    ] = None,
    sentences: Annotated[int, option("The number of sentences.", "N", min=1)] = 1000,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Measure every head of a model on held-out sentences: where it attends, and what it is worth.

    Without files, sentences are read that ship with the project. The profile is written to
    heads.json next to the model, and a summary to its card; the page shows both.
    """
    from headlight.model.device import choose_device
    from headlight.model.profiles.folder import measure_folder
    from headlight.models.foreign import load_folder
    from headlight.models.model_registry import CHECKS

    settings = settings_with_models(device=device, models_dir=models_dir)
    folder = folder_of(model, settings)
    with usage_errors():
        place = choose_device(settings.device)
        checkpoint = load_folder(folder, settings.own_models_dir / CHECKS, device=place)
        with progress(f"measuring the heads of {folder.name}") as on_progress:
            measured = measure_folder(folder, checkpoint, text or [], sentences, on_progress)
        show(_table(measured, folder.name))


def _table(measured: Mapping[str, Any], title: str) -> Table:
    from headlight.model.checkpoint.card import cost_in_words
    from headlight.model.profiles.folder import summary_of

    table = Table("attention", "head", "labels", "bits a byte without it", title=title)
    for path, heads in summary_of(measured)["attentions"].items():
        for number, head in enumerate(heads):
            labels = ", ".join(f"{name} {score:.2f}" for name, score in head["labels"].items())
            table.add_row(path, str(number), labels, cost_in_words(head))
    return table
