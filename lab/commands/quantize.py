"""`headlight quantize`: a model as its difference from another, in few bits."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from headlight.commands.options import ModelsDir
from headlight.commands.output import say
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
def quantize(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    base: Annotated[
        str, option("The model that it was fine-tuned from, and is read together with.", "MODEL")
    ],
    out: Annotated[Path, option("The folder to write; it must not exist.", "DIR")],
    bits: Annotated[int, option("Bits of each difference.", "N", min=2, max=8)] = 2,
    models_dir: ModelsDir = None,
) -> None:
    """Write a model as its difference from another, with few bits for each weight.

    The copy loads like any model, and `headlight evaluate` measures it like any. Its heads and
    curves are copied.
    """
    from headlight.model.checkpoint.difference import Difference
    from headlight.model.checkpoint.files import WEIGHTS
    from headlight.model.checkpoint.loading import find_model, load_checkpoint, save
    from headlight.model.checkpoint.profile import HEADS
    from headlight.model.checkpoint.run_curves import CURVES
    from headlight.model.foreign import is_foreign

    settings = settings_with_models(models_dir=models_dir)
    try:
        folder = find_model(model, settings.own_models_dir)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists already; name a new folder with --out")
    if is_foreign(folder):
        raise UsageError(
            f"'{model}' is a checkpoint of Transformers; only models of Headlight are quantized"
        )
    checkpoint, other = load_checkpoint(folder), load_checkpoint(folder_of(base))
    if other.tokenizer.to_json() != checkpoint.tokenizer.to_json():
        raise UsageError(f"{base} has another tokenizer than {checkpoint.id}")
    difference = Difference(base=other.id, revision=other.description.revision, bits=bits)
    card = checkpoint.description.card
    training = {**card.training, "difference_from": difference.to_dict()}
    card = replace(card, training=training)
    with usage_errors():
        save(out, checkpoint.model, checkpoint.tokenizer, card, difference=difference)
    for name in (HEADS, CURVES):
        if (folder / name).exists():
            shutil.copyfile(folder / name, out / name)
    before, after = ((path / WEIGHTS).stat().st_size for path in (folder, out))
    say(
        f"{out}: {after:,} bytes of weights in place of {before:,}, read together with {base}; "
        f"`headlight evaluate {out}` measures it"
    )
