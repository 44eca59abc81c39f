"""The work of `headlight evaluate` and `quantize`: figures on a card, a copy with fewer bits."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.table import Column, Table
from rich.text import Text

from headlight.commands.output import console, show
from headlight.commands.parsing import UsageError, usage_errors
from headlight.lab.evaluation.figures import joined, measure, measure_bits, measure_expert_tokens
from headlight.lab.evaluation.quantization import calibrated
from headlight.lab.figures import Evidence
from headlight.model.checkpoint.card import ModelCard, flatten, write_card
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.difference import Difference
from headlight.model.checkpoint.files import CARD, WEIGHTS, CheckpointError
from headlight.model.checkpoint.loading import find_model, load_checkpoint, save, write_atomically
from headlight.model.checkpoint.run_curves import CURVES
from headlight.model.corpus import read_documents
from headlight.model.device import choose_device
from headlight.model.foreign import is_foreign
from headlight.model.profiles.profile import HEADS
from headlight.model.quantization.affine import (
    Activations,
    Granularity,
    Quantized,
    StoredQuantization,
    UnknownPart,
)

BITS = "quantization"  # the figures on a card that --bits measures


def evaluate_model(
    model: str,
    evidence: Evidence,
    device: str,
    models_dir: Path | None,
    bits: Sequence[int],
    calibration: Sequence[Path] = (),
) -> dict[str, Any]:
    """Measure a model, given its id or its folder, and write the figures to its card.

    Figures that need other evidence stay on the card: without any, only those on the project's own
    texts change. With `bits` the model is measured in fewer bits, and only those figures change;
    those of other bits stay if they were measured on the same text.

    Raises:
        UsageError: the model or the device is unknown, or the model takes no such evidence.
        ValueError: the folder or a file is unusable.
        ImportError: a library that a figure needs is not installed.
    """
    folder, place = _find(model, models_dir, device)
    if is_foreign(folder):
        raise UsageError(
            f"'{model}' is a checkpoint of Transformers; only its heads are measured: "
            f"headlight profile {model}"
        )
    checkpoint = load_checkpoint(folder, device=place)
    card = checkpoint.description.card
    if bits:
        with usage_errors():
            figures = {BITS: measure_bits(checkpoint, evidence, bits, calibration)}
        show(_figures_table(figures, checkpoint.id))
        known = card.metrics.get(BITS, {})
        if known.get("text") == figures[BITS]["text"]:  # else the figures do not compare
            figures[BITS] = {**known, **figures[BITS]}
        renewed = replace(card, metrics={**card.metrics, **figures})
        write_atomically(folder / CARD, lambda path: write_card(path, renewed))
        return figures
    with usage_errors():
        figures = measure(checkpoint, evidence)
        expert_tokens = measure_expert_tokens(checkpoint, evidence) or card.expert_tokens
    show(_figures_table(figures, checkpoint.id))
    if expert_tokens is not card.expert_tokens:
        show(_experts_table(expert_tokens, checkpoint.id))
    if evidence == Evidence():
        known = card.training.get("evaluation")
        console.print(
            "measured on the project's own texts; name held-out text with --text for the rest"
            + (f"; the figures on the card come from: {known}" if known else ""),
            markup=False,
        )
    figures = joined(card.metrics, figures, evidence)
    figures |= {BITS: card.metrics[BITS]} if BITS in card.metrics else {}
    renewed = replace(card, metrics=figures, expert_tokens=expert_tokens)
    write_atomically(folder / CARD, lambda path: write_card(path, renewed))
    return figures


def _find(model: str, models_dir: Path | None, device: str) -> tuple[Path, torch.device]:
    """Return the folder of a model, and the device to measure it on."""
    try:
        folder = find_model(model, models_dir)
    except CheckpointError as error:
        raise UsageError(str(error)) from error
    with usage_errors():
        return folder, choose_device(device)


def _experts_table(expert_tokens: Mapping[str, Any], title: str) -> Table:
    table = Table("layer", "expert", "of all tokens", "most of all", title=title)
    for layer, experts in expert_tokens["layers"].items():
        for number, expert in enumerate(experts):
            texts = " ".join(repr(token["text"]) for token in expert["tokens"])
            table.add_row(layer, str(number), f"{100 * expert['share']:.1f} %", Text(texts))
    return table


def _figures_table(figures: Mapping[str, Any], title: str) -> Table:
    table = Table(Column("figure", overflow="fold"), "value", title=title)
    for name, value in flatten(figures):
        table.add_row(name, str(value))
    return table


def quantize_model(
    model: str,
    out: Path,
    *,
    models_dir: Path | None,
    bits: int,
    parts: tuple[str, ...],
    per: Granularity,
    activations: Activations,
    base: str | None = None,
    calibration: Sequence[Path] = (),
) -> None:
    """Quantize a model, given its id or its folder, and write it to a new folder.

    With `base`, the copy is the difference from that model, and its card keeps the figures.

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
    if base is not None:
        if parts or calibration or per != "channel" or activations != "float":
            raise UsageError("--base excludes --part, --per, --activations and --calibration")
        _write_difference(checkpoint, folder, base, out, bits)
        return
    card = _card_of_copy(
        checkpoint.description.card, checkpoint.id, out.resolve().name, quantization
    )
    try:
        numbers: Mapping[str, Quantized] = {}
        if calibration:
            with usage_errors():
                numbers, _ = calibrated(checkpoint, read_documents(calibration), quantization)
        save(
            out,
            checkpoint.model,
            checkpoint.tokenizer,
            card,
            quantization=quantization,
            calibrated=numbers,
        )
    except UnknownPart as error:
        raise UsageError(str(error)) from error
    before, after = ((path / WEIGHTS).stat().st_size for path in (folder, out))
    console.print(
        f"{out}: {after:,} bytes of weights in place of {before:,}; "
        f"`headlight evaluate {out}` measures it",
        markup=False,
        soft_wrap=True,
    )


def _write_difference(
    checkpoint: Checkpoint, folder: Path, base: str, out: Path, bits: int
) -> None:
    """Write a model as its difference from another; card, heads and curves are copied."""
    try:
        other = load_checkpoint(find_model(base))
    except CheckpointError as error:
        raise UsageError(str(error)) from error
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
    before, after = ((path / WEIGHTS).stat().st_size for path in (folder, out))
    console.print(
        f"{out}: {after:,} bytes of weights in place of {before:,}, read together with {base}; "
        f"`headlight evaluate {out}` measures it",
        markup=False,
        soft_wrap=True,
    )


def _card_of_copy(
    card: ModelCard, source: str, title: str, quantization: StoredQuantization
) -> ModelCard:
    """Return the card of the quantized copy."""
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
