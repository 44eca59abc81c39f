"""The work of `headlight circuit`: find a circuit, and print it or write it to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from headlight.circuits.files import FORMATS, written
from headlight.commands.output import STANDARD_OUTPUT, check, show, writing
from headlight.commands.parsing import UsageError
from headlight.schemas.circuits import CircuitAnswer, CircuitRequest, FaithfulnessAnswer
from headlight.settings import Settings

OPTIONS = {"n_pairs": "--pairs", "n_edges": "--edges"}
"""The options of members of a request that are named otherwise."""


def list_tasks() -> None:
    """Print the name and the rule of each task that ships."""
    from headlight.model.circuits.tasks import described

    table = Table(Column("task", no_wrap=True), "rule", box=None, pad_edge=False)
    for name, rule in described():
        table.add_row(name, rule)
    show(table)


def find(
    model: str,
    task: str,
    options: dict[str, Any],
    settings: Settings,
    *,
    form: str | None,
    out: Path,
    force: bool,
    pairs_out: Path | None,
) -> None:
    """Find a circuit and print it, or write it to a file.

    Args:
        model: an id or a folder.
        task: the name of a task that ships, or a file of pairs.
        options: members of a `CircuitRequest`.
        settings: where models are.
        form: of `FORMATS`; None: a table is printed.
        out: the file.
        force: whether it may be replaced.
        pairs_out: a file for the pairs of the task.

    Raises:
        UsageError: an option is wrong.
        ValueError: the file holds no pairs.
        Problem: the model is unknown or has no graph.
    """
    from pydantic import ValidationError

    from headlight.circuits.find import compute
    from headlight.errors import Problem
    from headlight.models.registry import registry_of

    if form is not None and form not in FORMATS:
        raise UsageError(f"there is no format {form!r}; there are {', '.join(FORMATS)}")
    if out != STANDARD_OUTPUT and form is None:
        raise UsageError("--out is the file for --format; add it")
    for path in (out, pairs_out or STANDARD_OUTPUT):
        check(path, is_forced=force)
    try:
        request = CircuitRequest.model_validate({**_source(task), **options})
    except ValidationError as error:
        first = error.errors()[0]
        named = ".".join(map(str, first["loc"]))
        raise UsageError(f"{OPTIONS.get(named, named)}: {first['msg']}") from error
    registry = registry_of(settings)
    try:
        answer = compute(request, registry.checkpoint(model))
    except Problem as problem:
        raise ValueError(problem.detail) from problem
    if pairs_out is not None:
        with writing(pairs_out, is_forced=force) as file:
            for pair in answer.pairs:
                file.write(pair.model_dump_json(exclude_none=True).encode() + b"\n")
    if form is None:
        print_circuit(answer)
        return
    with writing(out, is_forced=force) as file:
        file.write(written(answer, form).encode())


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
