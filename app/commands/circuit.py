"""`headlight circuit`: find a circuit, and print it or write it to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column, Table
from rich.text import Text

from headlight.commands.options import Device, Force, ModelsDir
from headlight.commands.output import STANDARD_OUTPUT, check, progress, show, writing
from headlight.commands.parsing import (
    Commands,
    UsageError,
    chosen_models,
    option,
    request_errors,
    settings_with_models,
)
from headlight.commands.requests import flags_of, given, of_request

if TYPE_CHECKING:
    from headlight.schemas.circuits import CircuitAnswer, FaithfulnessAnswer

app = Commands()


@app.command(cls=of_request("headlight.schemas.circuits:CircuitRequest"))
def circuit(
    ctx: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")
    ] = None,
    task: Annotated[
        str | None,
        option(
            'A task that ships, or a file with a pair a line: {"clean": "The dogs with the '
            'girl", "corrupted": "The dog with the girl", "right": " were", '
            '"wrong": " was"}. Without MODEL the tasks are listed.',
            "TASK",
        ),
    ] = None,
    form: Annotated[str | None, option("Write json or csv.", "NAME", name="--format")] = None,
    out: Annotated[Path, option("The file for --format.", "FILE")] = Path("-"),
    save_pairs: Annotated[Path | None, option("Write the pairs of the task.", "FILE")] = None,
    force: Force = False,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Find the few edges of a model that do a task, and measure their own run.

    Edges lead from what a part writes to what a part reads. They are scored on one half of the
    pairs, and the run of the circuit is measured on the other half.
    """
    if model is None:
        list_tasks()
        return
    from pydantic import ValidationError

    from headlight.circuits.files import FORMATS, written
    from headlight.circuits.find import compute
    from headlight.models.model_registry import registry_of
    from headlight.problems import Problem
    from headlight.schemas.circuits import CircuitRequest

    settings = settings_with_models(device=device, models_dir=models_dir, **chosen_models([model]))
    if task is None:
        raise UsageError("name a --task, or a file of pairs; without MODEL they are listed")
    if form is not None and form not in FORMATS:
        raise UsageError(f"there is no format {form!r}; there are {', '.join(FORMATS)}")
    if out != STANDARD_OUTPUT and form is None:
        raise UsageError("--out is the file for --format; add it")
    for path in (out, save_pairs or STANDARD_OUTPUT):
        check(path, is_forced=force)
    try:
        request = CircuitRequest.model_validate({**_source(task), **given(ctx)})
    except ValidationError as error:
        raise UsageError(request_errors(error, given(ctx), flags_of(ctx))) from error
    registry = registry_of(settings)
    try:
        checkpoint = registry.checkpoint(settings.default_model)
        with progress("finding the circuit") as on_progress:
            answer = compute(request, checkpoint, on_progress=on_progress)
    except Problem as problem:
        raise ValueError(problem.detail) from problem
    if save_pairs is not None:
        with writing(save_pairs, is_forced=force) as file:
            for pair in answer.pairs:
                file.write(pair.model_dump_json(exclude_none=True).encode() + b"\n")
    if form is None:
        print_circuit(answer)
        return
    with writing(out, is_forced=force) as file:
        file.write(written(answer, form).encode())


def list_tasks() -> None:
    """Print the name and the rule of each task that ships."""
    from headlight.model.circuits.tasks import RULES

    table = Table(Column("task", no_wrap=True), "rule", box=None, pad_edge=False)
    for name, rule in RULES.items():
        table.add_row(name, rule)
    show(table)


def _source(task: str) -> dict[str, Any]:
    from headlight.model.circuits.tasks import TASKS, UnfitTask, as_request, read_task

    if task in TASKS:
        return {"task": task}
    path = Path(task)
    if not path.is_file():
        raise UsageError(f"{task} is neither a file nor a task; the tasks are {', '.join(TASKS)}")
    try:
        pairs = read_task(path)
    except UnfitTask as error:
        raise ValueError(str(error)) from error
    return {"pairs": as_request(pairs)}


def print_circuit(answer: CircuitAnswer) -> None:
    """Print the figures, the curve and the edges of a circuit."""
    for name, figures in (("chosen on", answer.chosen), ("held out", answer.held_out)):
        if figures is not None:
            show(Text(f"{name:<10} {_in_words(figures)}"))
    count = f"{len(answer.edges)} of {answer.n_edges} edges"
    show(Text(f"{count}; the run of all others keeps {answer.complement:.3f}"))
    for reason in answer.reasons:
        show(Text(reason))
    if answer.skipped:
        n_left = len(answer.skipped)
        show(Text(f"{n_left} of {n_left + len(answer.pairs)} pairs left out, such as:"))
        for reason in answer.skipped[:3]:
            show(Text(f"  {reason}"))
    if answer.curve:
        show("")
        show("The strongest edges, and how many of them lie on a path from a token to the logits:")
        columns = (Column(name, justify="right") for name in ("edges", "on paths", "faithfulness"))
        table = Table(*columns, Column("right", justify="right"), box=None, pad_edge=False)
        for point in answer.curve:
            figures_of_point = (f"{point.faithfulness:.3f}", f"{point.right:.0%}")
            table.add_row(f"{point.n_edges}", f"{point.n_on_paths}", *figures_of_point)
        show(table)
    show("")
    show("effect: logits for the right answer; loss: faithfulness that is lost without the edge")
    numbers = (Column(name, justify="right") for name in ("effect", "loss"))
    table = Table(Column("edge", no_wrap=True), *numbers, box=None, pad_edge=False)
    for edge in answer.edges:
        effect = "" if edge.score is None else f"{-edge.score:+.3f}"
        table.add_row(edge.name, effect, f"{edge.loss:+.3f}")
    show(table)


def _in_words(figures: FaithfulnessAnswer) -> str:
    low, high = figures.interval
    return (
        f"faithfulness {figures.value:.3f} ({low:.3f} to {high:.3f}, {figures.n_pairs} pairs); "
        f"logit difference {figures.circuit:+.2f}, clean {figures.clean:+.2f}, corrupted "
        f"{figures.corrupted:+.2f}; right {figures.circuit_right:.0%}, clean "
        f"{figures.clean_right:.0%}"
    )
