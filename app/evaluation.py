"""What the command line shows of an evaluation."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from model.card import flatten, write_card
from model.checkpoint import CARD, load, write_whole
from model.device import choose_device
from model.evaluation.card_figures import Evidence, measure

console = Console(highlight=False)


def evaluate_model(folder: Path, evidence: Evidence, device: str) -> dict[str, Any]:
    """Measure a model, print the figures and write them to its card.

    Without evidence only the figures on the project's own texts are measured, and the card keeps
    the others.

    Args:
        folder: the model.
        evidence: files to measure on.
        device: where to run.

    Raises:
        ValueError: the folder, a file or the device cannot be used.
        ImportError: a library that a figure needs is not installed.
    """
    checkpoint = load(folder, device=choose_device(device))
    card = checkpoint.description.card
    figures = measure(checkpoint, evidence)
    console.print(_figures_table(figures, checkpoint.id))
    if evidence == Evidence():
        known = card.training.get("evaluation")
        console.print(
            "measured on the project's own texts; name held-out text with --text for the rest"
            + (f"; the figures on the card come from: {known}" if known else ""),
            markup=False,
        )
        figures = {**card.metrics, **figures}
    renewed = replace(card, metrics=figures)
    write_whole(folder / CARD, lambda path: write_card(path, renewed))
    return figures


def _figures_table(figures: Mapping[str, Any], title: str) -> Table:
    table = Table("figure", "value", title=title)
    for name, value in flatten(figures):
        table.add_row(name, str(value))
    return table
