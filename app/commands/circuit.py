"""The work of `headlight circuit`: find a circuit here or on a server, and write it to a file.

GraphML (http://graphml.graphdrawing.org) is read by Gephi, yEd and NetworkX, DOT by Graphviz.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr  # nosec B406: written, never parsed

from rich.table import Column, Table
from rich.text import Text

from headlight.commands.output import STANDARD_OUTPUT, check, show, text_cell, writing
from headlight.commands.parsing import UsageError
from headlight.schemas.circuits import CircuitAnswer, CircuitRequest, FaithfulnessAnswer
from headlight.settings import Settings

FORMATS = ("json", "csv", "graphml", "dot")


def list_tasks() -> None:
    """Print the name and the rule of each task that ships."""
    from headlight.model.lab.evaluation.circuit_tasks import described

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

    from headlight.circuits import compute
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
        raise UsageError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
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
    from headlight.model.lab.evaluation.circuit_tasks import TASKS, UnfitTask, as_request, read_task

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
    show(Text(f"{len(answer.edges)} of {answer.n_edges} edges; all others {answer.complement:.3f}"))
    for reason in (*answer.reasons, *answer.skipped[:5]):
        show(Text(reason))
    if answer.curve:
        show("")
        columns = (Column(name, justify="right") for name in ("edges", "on paths", "faithfulness"))
        table = Table(*columns, Column("right", justify="right"), box=None, pad_edge=False)
        for point in answer.curve:
            figures_of_point = (f"{point.faithfulness:.3f}", f"{point.right:.0%}")
            table.add_row(f"{point.n_edges}", f"{point.n_on_paths}", *figures_of_point)
        show(table)
    show("")
    numbers = (Column(name, justify="right") for name in ("score", "loss"))
    table = Table(Column("edge", no_wrap=True), *numbers, box=None, pad_edge=False)
    for edge in answer.edges:
        score = "" if edge.score is None else f"{edge.score:+.3f}"
        table.add_row(edge.name, score, f"{edge.loss:+.3f}")
    show(table)


def _in_words(figures: FaithfulnessAnswer) -> str:
    low, high = figures.interval
    return (
        f"faithfulness {figures.value:.3f} ({low:.3f} to {high:.3f}, {figures.n_pairs} pairs); "
        f"logit difference {figures.circuit:+.2f}, clean {figures.clean:+.2f}, corrupted "
        f"{figures.corrupted:+.2f}; right {figures.circuit_right:.0%}, clean "
        f"{figures.clean_right:.0%}"
    )


def written(answer: CircuitAnswer, form: str) -> str:
    """Return a circuit in a format of `FORMATS`."""
    if form == "json":
        return answer.model_dump_json() + "\n"
    return "".join({"csv": csv_lines, "graphml": graphml_lines, "dot": dot_lines}[form](answer))


def csv_lines(answer: CircuitAnswer) -> Iterator[str]:
    """Yield the edges as a table: writer, reader, score, loss."""
    line = StringIO()
    write = csv.writer(line, lineterminator="\n").writerow
    for row in [
        ("writer", "reader", "score", "loss"),
        *(
            (
                text_cell(answer.writers[edge.writer].name),
                text_cell(answer.readers[edge.reader].name),
                "" if edge.score is None else edge.score,
                edge.loss,
            )
            for edge in answer.edges
        ),
    ]:
        write(row)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def nodes_of(answer: CircuitAnswer) -> tuple[list[str], list[tuple[str, str, Any]]]:
    """Return the nodes of a drawing, and its edges as (from, to, edge).

    Queries, keys and values are drawn in the node of their head; the edge has their letter.
    """
    edges = []
    for edge in answer.edges:
        reader = answer.readers[edge.reader]
        name = reader.name
        if reader.kind in ("query", "key", "value"):
            name = name.rpartition(".")[0]
        edges.append((answer.writers[edge.writer].name, name, edge))
    names = dict.fromkeys(name for first, last, _ in edges for name in (first, last))
    return list(names), edges


def _letter(answer: CircuitAnswer, number: int) -> str:
    kind = answer.readers[number].kind
    return {"query": "q", "key": "k", "value": "v"}.get(kind, "")


def graphml_lines(answer: CircuitAnswer) -> Iterator[str]:
    """Yield the circuit as GraphML."""
    names, edges = nodes_of(answer)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name, kind in (("input", "string"), ("score", "double"), ("loss", "double")):
        yield f'<key id="{name}" for="edge" attr.name="{name}" attr.type="{kind}"/>\n'
    yield f'<graph id={quoteattr(answer.model)} edgedefault="directed">\n'
    for name in names:
        yield f"<node id={quoteattr(name)}/>\n"
    for first, last, edge in edges:
        data: Sequence[tuple[str, Any]] = (
            ("input", _letter(answer, edge.reader)),
            ("score", edge.score),
            ("loss", edge.loss),
        )
        inside = "".join(
            f'<data key="{name}">{escape(str(value))}</data>'
            for name, value in data
            if value not in (None, "")
        )
        yield f"<edge source={quoteattr(first)} target={quoteattr(last)}>{inside}</edge>\n"
    yield "</graph>\n</graphml>\n"


def dot_lines(answer: CircuitAnswer) -> Iterator[str]:
    """Yield the circuit in the language of Graphviz; width by size of score, colour by sign."""
    names, edges = nodes_of(answer)
    largest = max((abs(edge.score or edge.loss) for *_, edge in edges), default=1.0) or 1.0
    yield f"digraph {_quoted(answer.model)} {{\n  rankdir=BT;\n  node [shape=box];\n"
    for name in names:
        yield f"  {_quoted(name)};\n"
    for first, last, edge in edges:
        strength = edge.loss if edge.score is None else -edge.score
        colour = "#2166ac" if strength >= 0 else "#b2182b"
        yield (
            f"  {_quoted(first)} -> {_quoted(last)} [label={_quoted(_letter(answer, edge.reader))}"
            f', color="{colour}", penwidth={0.3 + 4 * abs(strength) / largest:.2f}];\n'
        )
    yield "}\n"


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))
