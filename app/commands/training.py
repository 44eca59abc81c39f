"""What the command line shows of a training run."""

from dataclasses import replace

import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from headlight.model.card import ModelCard, read_card
from headlight.model.checkpoint_files import CARD
from headlight.model.device import machine_of
from headlight.model.training.loop import Loop, StepReport
from headlight.model.training.run import finish, read_run

console = Console(highlight=False)


def run_loop(loop: Loop, title: str) -> bool:
    """Train to the end or to Ctrl-C, showing how it goes, and write the model.

    Args:
        loop: prepared by `headlight.model.training.run`.
        title: what the card calls the model.

    Returns:
        False when the run was stopped before its last step; its state is saved.
    """
    shown = Console(highlight=False, quiet=not loop.processes.is_first)
    shown.print(_headline(loop, title), markup=False, soft_wrap=True)
    try:
        with _progress(shown) as progress:
            task = progress.add_task("", total=loop.config.steps, completed=loop.step, figures="")
            is_finished = loop.run(lambda report: _show(progress, task, report))
    except RuntimeError as error:
        if not _is_out_of_memory(error):
            raise
        raise ValueError(
            f"memory ran out in step {loop.step + 1}; read each batch in more parts with "
            f"--set loop.accumulate={2 * loop.config.accumulate}, or make the model smaller"
        ) from error
    if loop.processes.is_first:
        finish(loop, _card(loop, title))
    if is_finished:
        shown.print(f"trained {loop.step} steps; the model is in {loop.out}", markup=False)
    else:
        shown.print(
            f"stopped after step {loop.step} and saved; go on with --out {loop.out} --resume",
            markup=False,
        )
    return is_finished


def _headline(loop: Loop, title: str) -> str:
    """What is about to be trained, and on what."""
    config = loop.model.config
    n_parameters = sum(parameter.numel() for parameter in loop.model.parameters())
    facts = [
        config.kind,
        f"{n_parameters:,} parameters",
        f"{config.vocab_size:,} tokens in the vocabulary",
        f"{_precision(loop)} on {machine_of(loop.model.vectors.device)}",
    ]
    if loop.processes.size > 1:
        facts.append(f"{loop.processes.size} processes")
    return f"{title}: {', '.join(facts)}"


def _precision(loop: Loop) -> str:
    return str(loop.precision).removeprefix("torch.")


def _is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a device, or this machine, has no room left; the latter has no class of its own."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def _progress(shown: Console) -> Progress:
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps {task.fields[figures]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=shown,
    )


def _show(progress: Progress, task: TaskID, report: StepReport) -> None:
    figures = f"loss {report.loss:.3f}  {report.tokens / report.seconds:,.0f} tokens/s"
    progress.update(task, completed=report.step, figures=figures)
    if report.valid_loss is not None:
        figures += f"  held-out loss {report.valid_loss:.3f}"
        if report.balance_loss:  # a dense model has none
            figures += f"  balance loss {report.balance_loss:.3f}"
        progress.console.print(f"step {report.step:>6}  {figures}", soft_wrap=True)


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
        "recipe": read_run(loop.out).recipe,
        "command": " && ".join(read_run(loop.out).commands),
        "seed": loop.config.seed,
        "steps": loop.step,
        "tokens": loop.tokens,
        "hours": round(loop.seconds / 3600, 2),
        "machine": machine_of(loop.model.vectors.device),
        "precision": _precision(loop),
    }
    if loop.processes.size > 1:
        training["processes"] = loop.processes.size
    is_same = known.training.get("steps") == loop.step
    return replace(known, training=training, metrics=known.metrics if is_same else {})
