"""The work of `headlight quantize`: a copy of a model with fewer bits for each weight."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headlight.commands.output import console
from headlight.commands.parsing import UsageError
from headlight.model.card import ModelCard
from headlight.model.checkpoint import find_model, load_checkpoint, save
from headlight.model.checkpoint_files import WEIGHTS
from headlight.model.foreign import is_foreign
from headlight.model.quantization import Activations, Granularity, StoredQuantization, UnknownPart


def quantize_model(
    model: str,
    out: Path,
    *,
    models_dir: Path | None,
    bits: int,
    parts: tuple[str, ...],
    per: Granularity,
    activations: Activations,
) -> None:
    """Quantize a model, given its id or its folder, and write it to a new folder.

    The card keeps the sources and examples, and loses the figures: those were of other weights.

    Raises:
        UsageError: the model is unknown, foreign or quantized already, `out` exists, or a setting
            is not allowed.
        ValueError: the model's folder is unusable, or a weight is not finite.
        OSError: `out` cannot be written.
    """
    try:
        folder = find_model(model, models_dir)
        quantization = StoredQuantization(bits=bits, parts=parts, per=per, activations=activations)
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
    card = _card(checkpoint.description.card, checkpoint.id, out.resolve().name, quantization)
    try:
        save(out, checkpoint.model, checkpoint.tokenizer, card, quantization=quantization)
    except UnknownPart as error:
        raise UsageError(str(error)) from error
    before, after = ((path / WEIGHTS).stat().st_size for path in (folder, out))
    console.print(
        f"{out}: {after:,} bytes of weights in place of {before:,}; "
        f"`headlight evaluate {out}` measures it",
        markup=False,
        soft_wrap=True,
    )


def _card(card: ModelCard, source: str, title: str, quantization: StoredQuantization) -> ModelCard:
    """The card of the copy."""
    what = "all matrices" if not quantization.parts else ", ".join(quantization.parts)
    each = "row of a matrix" if quantization.per == "channel" else "matrix"
    prose = (
        f"# {title}\n\n`{source}` with {quantization.bits} bits for each weight of {what}, and a "
        f"scale and zero point for each {each}; biases and norms are as they were."
    )
    if quantization.activations == "dynamic":
        prose += " Linear layers round their inputs to 8 bits in each pass, too."
    known = {name: card.training[name] for name in ("recipe",) if name in card.training}
    return replace(
        card,
        title=f"{card.title}, {quantization.bits} bits",
        training={**known, "quantized_from": source, "quantization": quantization.to_dict()},
        metrics={},
        expert_tokens={},
        prose=prose,
    )
