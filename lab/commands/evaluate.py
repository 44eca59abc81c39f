"""`headlight evaluate`: figures of a model, on its card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headlight.commands.options import Device, Files, ModelsDir
from headlight.commands.parsing import Commands, UsageError, option, settings_with_models

app = Commands()


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    text: Annotated[
        Files,
        option("Held-out text, or held-out pairs for a translator; repeat it for more.", "FILE"),
    ] = None,
    other: Annotated[
        Files,
        option(
            "Held-out text of another kind, such as other authors'; repeat it for more.", "FILE"
        ),
    ] = None,
    pairs: Annotated[
        Path | None, option("Minimal pairs: JSON lines of paradigm, good and bad.", "FILE")
    ] = None,
    corpus: Annotated[
        Files,
        option(
            "The training corpus, to count the tokens of each expert or to train the IBM "
            "models; repeat it for more.",
            "FILE",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        option("A second word alignment to compare a translator's attention with.", "FILE"),
    ] = None,
    bits: Annotated[
        list[int] | None,
        option(
            "Measure the model with this many bits for each weight instead, and the model as it "
            "is for comparison; repeat it for more.",
            "N",
            min=2,
            max=8,
        ),
    ] = None,
    calibration: Annotated[
        Files,
        option(
            "With --bits: also round the linear layers by GPTQ on the first rows of this text; "
            "repeat it for more.",
            "FILE",
        ),
    ] = None,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Measure a model on unseen text and write the figures to its card.

    Without files, the model is measured on the texts that ship with the project. `headlight
    profile` measures its heads.
    """
    settings = settings_with_models(models_dir=models_dir)
    from headlight.lab.commands.evaluation import evaluate_model

    device = device or settings.device
    from headlight.lab.figures import Evidence

    evidence = Evidence(
        text=tuple(text or ()),
        other=tuple(other or ()),
        corpus=tuple(corpus or ()),
        minimal_pairs=pairs,
        gold=gold,
    )
    if calibration and not bits:
        raise UsageError("--calibration is for fewer bits; name them with --bits")
    evaluate_model(model, evidence, device, settings.own_models_dir, bits or (), calibration or ())
