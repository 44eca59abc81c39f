"""The evaluate command: measure a model, print the figures and write them to its card."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from headlight.commands.options import UsageError
from headlight.commands.output import console
from headlight.commands.training import usage_errors
from headlight.model.card import flatten, write_card
from headlight.model.checkpoint import find_model, load, write_atomically
from headlight.model.checkpoint_files import CARD, CheckpointError
from headlight.model.device import choose_device
from headlight.model.evaluation.figures import Evidence, measure, measure_expert_tokens


def evaluate_model(
    model: str, evidence: Evidence, device: str, models_dir: Path | None = None
) -> dict[str, Any]:
    """Measure a model, print the figures and write them to its card.

    Figures that need other evidence stay on the card: without any, only those on the project's own
    texts change.

    Args:
        model: a model's id, or its folder.
        evidence: the files to measure on.
        device: auto, cpu, cuda or mps.
        models_dir: a directory with more models, one folder each.

    Raises:
        UsageError: the model or the device is unknown, or the model takes no such evidence.
        ValueError: the folder or a file is unusable.
        ImportError: a library that a figure needs is not installed.
    """
    try:
        folder = find_model(model, models_dir)
    except CheckpointError as error:
        raise UsageError(str(error)) from error
    with usage_errors():
        place = choose_device(device)
    checkpoint = load(folder, device=place)
    card = checkpoint.description.card
    with usage_errors():
        figures = measure(checkpoint, evidence)
        found = measure_expert_tokens(checkpoint, evidence) or card.expert_tokens
    console.print(_figures_table(figures, checkpoint.id))
    if found is not card.expert_tokens:
        console.print(_experts_table(found, checkpoint.id))
    if evidence == Evidence():
        known = card.training.get("evaluation")
        console.print(
            "measured on the project's own texts; name held-out text with --text for the rest"
            + (f"; the figures on the card come from: {known}" if known else ""),
            markup=False,
        )
    if set(figures) <= {"sample"}:
        figures = {**card.metrics, **figures}
    renewed = replace(card, metrics=figures, expert_tokens=found)
    write_atomically(folder / CARD, lambda path: write_card(path, renewed))
    return figures


def _experts_table(found: Mapping[str, Any], title: str) -> Table:
    table = Table("layer", "expert", "of all tokens", "most of all", title=title)
    for layer, experts in found["layers"].items():
        for number, expert in enumerate(experts):
            texts = " ".join(repr(token["text"]) for token in expert["tokens"])
            table.add_row(layer, str(number), f"{100 * expert['share']:.1f} %", Text(texts))
    return table


def _figures_table(figures: Mapping[str, Any], title: str) -> Table:
    table = Table("figure", "value", title=title)
    for name, value in flatten(figures):
        table.add_row(name, str(value))
    return table
