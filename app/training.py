"""What the command line shows of a training run and of an evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from model.card import ModelCard, flatten, read_card, write_card
from model.checkpoint import CARD, load, write_whole
from model.device import choose_device, machine_of
from model.evaluation.minimal_pairs import read_pairs
from model.evaluation.stories import evaluate
from model.training.corpus import read_documents
from model.training.loop import Loop, StepReport
from model.training.run import finish, read_run

console = Console(highlight=False)


def run_loop(loop: Loop, title: str) -> bool:
    """Train to the end or to Ctrl-C, showing how it goes, and write the model.

    Args:
        loop: prepared by `model.training.run`.
        title: what the card calls the model.

    Returns:
        False when the run was stopped before its last step; its state is saved.
    """
    with _progress() as progress:
        task = progress.add_task("", total=loop.config.steps, completed=loop.step, figures="")
        is_finished = loop.run(lambda report: _show(progress, task, report))
    finish(loop, _card(loop, title))
    if is_finished:
        console.print(f"trained {loop.step} steps; the model is in {loop.out}", markup=False)
    else:
        console.print(
            f"stopped after step {loop.step} and saved; go on with --out {loop.out} --resume",
            markup=False,
        )
    return is_finished


def evaluate_model(
    folder: Path, text: Sequence[Path], pairs: Path | None, device: str
) -> dict[str, Any]:
    """Measure a model, print the figures and write them to its card.

    Args:
        folder: the model.
        text: files of held-out text.
        pairs: a file of minimal pairs, or None.
        device: where to run.

    Raises:
        ValueError: the folder, a file or the device cannot be used.
    """
    checkpoint = load(folder, device=choose_device(device))
    card = checkpoint.description.card
    if not text:
        raise ValueError(_missing_text(card))
    figures = evaluate(checkpoint, read_documents(text), read_pairs(pairs) if pairs else [])
    console.print(_figures_table(figures, checkpoint.id))
    renewed = replace(card, metrics=figures)
    write_whole(folder / CARD, lambda path: write_card(path, renewed))
    return figures


def _missing_text(card: ModelCard) -> str:
    """What to say to who names no text; a card may hold the command that measured its figures."""
    known = card.training.get("evaluation")
    by_card = f"; the figures on the card come from: {known}" if known else ""
    return f"name held-out text with --text{by_card}"


def _progress() -> Progress:
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps {task.fields[figures]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
    )


def _show(progress: Progress, task: TaskID, report: StepReport) -> None:
    figures = f"loss {report.loss:.3f}  {report.tokens / report.seconds:,.0f} tokens/s"
    progress.update(task, completed=report.step, figures=figures)
    if report.valid_loss is not None:
        held_out = f"held-out loss {report.valid_loss:.3f}  balance loss {report.balance_loss:.3f}"
        console.print(f"step {report.step:>6}  {figures}  {held_out}")


def _card(loop: Loop, title: str) -> ModelCard:
    """The facts of the run; what the model is good for is left to a person to write.

    A card that is there already keeps what a person wrote, and its figures as long as they are of
    these weights.
    """
    path = loop.out / CARD
    prose = f"# {title}\n\nNot described yet."
    fresh = ModelCard(title=title, licence="not stated", prose=prose)
    known = read_card(path) if path.exists() else fresh
    training = {
        "command": " && ".join(read_run(loop.out).commands),
        "seed": loop.config.seed,
        "steps": loop.step,
        "tokens": loop.tokens,
        "hours": round(loop.seconds / 3600, 2),
        "machine": machine_of(next(loop.model.parameters()).device),
        "precision": str(loop.precision).removeprefix("torch."),
    }
    is_same = known.training.get("steps") == loop.step
    return replace(known, training=training, metrics=known.metrics if is_same else {})


def _figures_table(figures: Mapping[str, Any], title: str) -> Table:
    table = Table("figure", "value", title=title)
    for name, value in flatten(figures):
        table.add_row(name, str(value))
    return table
