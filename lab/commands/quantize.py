"""`headlight quantize`: a copy of a model with fewer bits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from headlight.commands.options import Files, ModelsDir
from headlight.commands.parsing import Commands, option, settings_with_models

app = Commands()


@app.command()
def quantize(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    out: Annotated[Path, option("The folder to write; it must not exist.", "DIR")],
    bits: Annotated[int, option("Bits of each weight.", "N", min=2, max=8)] = 8,
    parts: Annotated[
        list[str] | None,
        option(
            "Only the matrices of this module, a name or a glob such as '*.feed_forward'; repeat "
            "it for more.",
            "GLOB",
            "every matrix",
            name="--part",
        ),
    ] = None,
    per: Annotated[
        Literal["channel", "tensor"],
        option("A scale and zero point for each row of a matrix, or for all of it."),
    ] = "channel",
    activations: Annotated[
        Literal["float", "dynamic"],
        option(
            "dynamic: linear layers multiply whole numbers, and round their input by its extremes "
            "in each pass; needs 8 bits and a CPU."
        ),
    ] = "float",
    calibration: Annotated[
        Files,
        option(
            "Round the linear layers by GPTQ on the first rows of this text, so that their outputs "
            "change least; repeat it for more.",
            "FILE",
        ),
    ] = None,
    base: Annotated[
        str | None,
        option(
            "Store only the difference from this model, which the copy was fine-tuned from and "
            "is read together with.",
            "MODEL",
        ),
    ] = None,
    models_dir: ModelsDir = None,
) -> None:
    """Write a smaller copy of a model, with fewer bits for each weight.

    The copy loads like any model. `headlight evaluate MODEL --bits 4` measures what it costs.
    """
    settings = settings_with_models(models_dir=models_dir)
    from headlight.lab.commands.evaluation import quantize_model

    quantize_model(
        model,
        out,
        models_dir=settings.own_models_dir,
        bits=bits,
        parts=tuple(parts or ()),
        per=per,
        activations=activations,
        base=base,
        calibration=calibration or (),
    )
