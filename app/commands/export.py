"""`headlight export`: a model as an ONNX graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headlight.commands.options import Force, ModelsDir
from headlight.commands.output import check, in_words, note, writing
from headlight.commands.parsing import (
    Commands,
    UsageError,
    folder_of,
    option,
    settings_with_models,
    usage_errors,
)

app = Commands()


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="The name of a model of this project.")],
    onnx: Annotated[Path, option("The folder in which to write NAME.onnx.", "FOLDER")],
    force: Force = False,
    models_dir: ModelsDir = None,
) -> None:
    """Write a model as an ONNX graph with its sites, edits and derived numbers.

    The graph is checked against PyTorch on 50 texts; the differences are in its metadata.
    Needs the extra `onnx`.
    """
    from headlight.model.checkpoint.loading import load_checkpoint
    from headlight.model.export import export_model
    from headlight.model.foreign import is_foreign

    folder = folder_of(model, settings_with_models(models_dir=models_dir))
    if is_foreign(folder):
        raise UsageError(
            f"'{model}' is a checkpoint of Transformers; only models of Headlight are exported"
        )
    checkpoint = load_checkpoint(folder)
    path = onnx / f"{checkpoint.id}.onnx"
    if onnx.exists() and not onnx.is_dir():
        raise UsageError(f"'{onnx}' is a file; name a folder")
    try:
        if onnx.is_dir():
            check(path, is_forced=force)
        note(f"tracing {checkpoint.id}, then checking it on texts: this takes some minutes")
        with usage_errors():
            graph, manifest = export_model(checkpoint)
        onnx.mkdir(parents=True, exist_ok=True)
    except (ImportError, OSError) as error:
        raise UsageError(in_words(error)) from error
    with writing(path, is_forced=force) as file:
        file.write(graph)
    gaps = manifest["differences"]
    note(
        f"{path} is written: {len(graph) / 1e6:.1f} MB. Over {gaps['texts']} texts logits differ "
        f"from PyTorch by at most {gaps['logits']:.1e}, weights by {gaps['weights']:.1e}"
    )
