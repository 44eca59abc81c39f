"""What the command line shows of an evaluation."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headlight.model.card import flatten, write_card
from headlight.model.checkpoint import load, write_atomically
from headlight.model.checkpoint_files import CARD
from headlight.model.device import choose_device
from headlight.model.evaluation.figures import Evidence, measure, measure_expert_tokens

console = Console(highlight=False)


def evaluate_model(folder: Path, evidence: Evidence, device: str) -> dict[str, Any]:
    """Measure a model, print the figures and write them to its card.

    What cannot be measured on this evidence stays on the card as it was: without any, only the
    figures on the project's own texts are new.

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
