"""`headlight quantize`: a copy of a model with fewer bits."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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

if TYPE_CHECKING:
    from headlight.model.checkpoint.card import ModelCard
    from headlight.model.checkpoint.checkpoint import Checkpoint
    from headlight.model.quantization.affine import Quantization

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

    The copy loads like any model, and `headlight evaluate` measures it like any.
    """
    from headlight.model.checkpoint.loading import find_model, load_checkpoint, save
    from headlight.model.foreign import is_foreign
    from headlight.model.quantization.affine import Quantization, UnknownPart

    settings = settings_with_models(models_dir=models_dir)
    try:
        folder = find_model(model, settings.own_models_dir)
        quantization = Quantization(bits=bits, parts=tuple(parts or ()), per=per)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists already; name a new folder with --out")
    if is_foreign(folder):
        raise UsageError(
            f"'{model}' is a checkpoint of Transformers; only models of Headlight are quantized"
        )
    checkpoint = load_checkpoint(folder)
    if (known := checkpoint.description.quantization) is not None:
        raise UsageError(
            f"'{model}' is quantized already, to {known.bits} bits; quantize the model it was made "
            "from"
        )
    if base is not None:
        if parts or per != "channel":
            raise UsageError("--base excludes --part and --per")
        _write_difference(checkpoint, folder, base, out, bits)
        return
    card = _card_of_copy(
        checkpoint.description.card, checkpoint.id, out.resolve().name, quantization
    )
    try:
        save(out, checkpoint.model, checkpoint.tokenizer, card, quantization=quantization)
    except UnknownPart as error:
        raise UsageError(str(error)) from error
    _tell_sizes(folder, out)


def _write_difference(
    checkpoint: Checkpoint, folder: Path, base: str, out: Path, bits: int
) -> None:
    """Write a model as its difference from another; card, heads and curves are copied."""
    from headlight.model.checkpoint.difference import Difference
    from headlight.model.checkpoint.loading import load_checkpoint, save
    from headlight.model.checkpoint.profile import HEADS
    from headlight.model.checkpoint.run_curves import CURVES

    other = load_checkpoint(folder_of(base))
    if other.tokenizer.to_json() != checkpoint.tokenizer.to_json():
        raise UsageError(f"{base} has another tokenizer than {checkpoint.id}")
    difference = Difference(base=other.id, revision=other.description.revision, bits=bits)
    card = checkpoint.description.card
    training = {**card.training, "difference_from": difference.to_dict()}
    with usage_errors():
        save(
            out,
            checkpoint.model,
            checkpoint.tokenizer,
            replace(card, training=training),
            difference=difference,
        )
    for name in (HEADS, CURVES):
        if (folder / name).exists():
            shutil.copyfile(folder / name, out / name)
    _tell_sizes(folder, out, f", read together with {base}")


def _card_of_copy(
    card: ModelCard, source: str, title: str, quantization: Quantization
) -> ModelCard:
    """Return the card of the quantized copy."""
    what = "all matrices" if not quantization.parts else ", ".join(quantization.parts)
    each = "row of a matrix" if quantization.per == "channel" else "matrix"
    prose = (
        f"# {title}\n\n`{source}` with {quantization.bits} bits for each weight of {what}, and a "
        f"scale and zero point for each {each}; biases and norms are as they were."
    )
    known = {name: card.training[name] for name in ("recipe",) if name in card.training}
    return replace(
        card,
        title=f"{card.title}, {quantization.bits} bits",
        training={**known, "quantized_from": source, "quantization": quantization.to_dict()},
        metrics={},
        expert_tokens={},
        prose=prose,
    )


def _tell_sizes(folder: Path, out: Path, further: str = "") -> None:
    from headlight.model.checkpoint.files import WEIGHTS

    before, after = ((path / WEIGHTS).stat().st_size for path in (folder, out))
    say(
        f"{out}: {after:,} bytes of weights in place of {before:,}{further}; "
        f"`headlight evaluate {out}` measures it"
    )
