"""`headlight experiment`: run it here, print its result as a table, JSON or CSV.

The CSV has one line for each number, with a column for every axis of the result:

    array,distance,cell,value
    gradient,0,linear,1.0

An axis has the value that the array of its name holds, or else the index; an axis that an array
does not have is empty. A text that a spreadsheet would read as a formula has a tab before it.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from headlight.commands.options import AsJson
from headlight.commands.output import check, notes, show, text_cell, writing
from headlight.commands.parsing import Commands, UsageError, error_lines, one_format, option

if TYPE_CHECKING:
    import numpy as np

    from headlight.model.experiments.experiment import Experiment, Frame, Parameters

app = Commands()


@app.command()
def experiment(
    name: Annotated[
        str | None,
        typer.Argument(help="The experiment; without it all are listed.", metavar="NAME"),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        option(
            "Change a parameter: length=80, positional=rotary; repeat it for more.",
            "NAME=VALUE",
            name="--set",
        ),
    ] = None,
    describe: Annotated[
        bool, option("Print its parameters, their limits, and what to see.", name="--describe")
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool, option("Print a table with one line for each number.", name="--csv")
    ] = False,
    out: Annotated[Path, option("The file for --json or --csv.", "FILE")] = Path("-"),
    force: Annotated[bool, option("Replace an existing file.", name="--force")] = False,
) -> None:
    """Run an experiment: a small computation that shows one mechanism."""
    if name is None:
        list_experiments()
    elif describe:
        describe_experiment(name)
    else:
        run_experiment(
            name, assignments or [], as_json=as_json, as_csv=as_csv, out=out, force=force
        )


def list_experiments() -> None:
    """Print the name and the title of every experiment."""
    from headlight.model.experiments.registry import EXPERIMENTS

    table = Table(Column("name", no_wrap=True), "title", box=None, pad_edge=False)
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.id, experiment.title)
    show(table)


def describe_experiment(name: str) -> None:
    """Print an experiment's paragraphs, its parameters with their limits, and its arrays."""
    experiment = _find(name)
    show(Text(experiment.title, style="bold"))
    for paragraph in (experiment.see, experiment.field):
        show("")
        show(Text(paragraph))
    show("")
    for url, title in experiment.sources.items():
        show(Text(f"{title}: {url}"))
    show("")
    show(Text("Parameters, for --set", style="bold"))
    for parameter, schema in experiment.parameters.model_json_schema()["properties"].items():
        show(Text(f"{parameter}={json.dumps(schema['default'])}  {_range(schema)}".rstrip()))
        show(Padding(Text(schema["description"]), (0, 0, 0, 2)))
    show("")
    show(Text("Arrays of the result", style="bold"))
    for array, quantity in experiment.quantities.items():
        show(Text(f"{array}  ({', '.join(quantity.axes.split())})  {quantity.unit}".rstrip()))
        show(Padding(Text(quantity.help), (0, 0, 0, 2)))


def run_experiment(
    name: str,
    assignments: Sequence[str],
    *,
    as_json: bool,
    as_csv: bool,
    out: Path,
    force: bool,
) -> None:
    """Run an experiment and write its result.

    Raises:
        UsageError: an option is wrong.
        OSError, ValueError: the file cannot be written.
    """
    from headlight.model.experiments.experiment import collect

    one_format(as_json=as_json, as_csv=as_csv, out=out)
    check(out, is_forced=force)
    experiment = _find(name)
    parameters = _parameters(experiment, assignments)
    result = collect(_with_progress(experiment, parameters))
    if not (as_json or as_csv):
        _print_result(experiment, result)
        return
    with writing(out, is_forced=force) as file:
        if as_json:
            from headlight.serving.experiment_runs import encoded_result

            file.write(encoded_result(experiment, parameters, result) + b"\n")
        else:
            file.writelines(line.encode() for line in csv_lines(result))


def csv_lines(result: Frame) -> Iterator[str]:
    """Yield the lines of the table in long format; the first names the columns."""
    axes = list(dict.fromkeys(axis for array in result.values() for axis in array.axes))
    line = StringIO()
    write = csv.writer(line, lineterminator="\n").writerow
    write(["array", *axes, "value"])
    for name, array in result.items():
        if array.axes == (name,):
            continue  # the values of an axis are in its column
        cells = [
            result[axis].data.tolist() if axis in result else range(size)
            for axis, size in zip(array.axes, array.data.shape, strict=True)
        ]
        for place, value in zip(product(*cells), array.data.ravel().tolist(), strict=True):
            texts = (text_cell(each) if isinstance(each, str) else each for each in place)
            label_by_axis = dict(zip(array.axes, texts, strict=True))
            write([name, *(label_by_axis.get(axis, "") for axis in axes), value])
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _find(name: str) -> Experiment:
    from headlight.model.experiments.registry import EXPERIMENTS

    if name not in EXPERIMENTS:
        raise UsageError(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def _parameters(experiment: Experiment, assignments: Sequence[str]) -> Parameters:
    """Return the parameters of ``NAME=VALUE`` assignments, whose values are JSON or plain text."""
    from pydantic import ValidationError

    from headlight.model.experiments.experiment import TooCostly

    values: dict[str, Any] = {}
    for assignment in assignments:
        parameter, sign, text = assignment.partition("=")
        if not (parameter and sign):
            raise UsageError(f"--set {assignment} is not NAME=VALUE")
        values[parameter] = _value(text)
    try:
        return experiment.validate(values)
    except ValidationError as error:
        message = error_lines(error, lambda places: ".".join(map(str, places)) or experiment.id)
        schemas = experiment.parameters.model_json_schema()["properties"]
        wrong = dict.fromkeys(str(each["loc"][0]) for each in error.errors() if each["loc"])
        ranges = {name: _range(schemas[name]) for name in wrong if name in schemas}
        allowed = "".join(f"\n{name}: {limits}" for name, limits in ranges.items() if limits)
        raise UsageError(
            f"{message}{allowed}\n"
            f"`headlight experiment {experiment.id} --describe` lists the parameters"
        ) from error
    except TooCostly as error:
        raise UsageError(str(error)) from error


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _with_progress(experiment: Experiment, parameters: Parameters) -> Iterator[Frame]:
    """Yield the frames; on a terminal, a line says how many there are so far."""
    start = time.monotonic()
    with notes.status(experiment.title) as status:
        for number, frame in enumerate(experiment.start(parameters), start=1):
            elapsed = time.monotonic() - start
            status.update(f"{experiment.title}: frame {number}, {elapsed:.0f} s")
            yield frame


def _print_result(experiment: Experiment, result: Frame) -> None:
    """List the arrays, one a line: name, axes, unit, first and last numbers."""
    table = Table("array", "axes", "unit", "values", box=None, pad_edge=False)
    for name, array in result.items():
        table.add_row(
            name,
            array.sizes or "a number",
            experiment.quantities[name].unit,
            Text(_shown(array.data)),
        )
    show(Text(experiment.title, style="bold"))
    show(table)
    show("")
    show(Text(experiment.see))


def _shown(data: np.ndarray[Any, Any]) -> str:
    """Format a number, or the first and the last of several."""
    values = data.ravel().tolist()
    texts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]
    if len(texts) <= 6:
        return " ".join(texts)
    return " ".join([*texts[:3], "…", *texts[-2:]])


def _range(schema: dict[str, Any]) -> str:
    """Return the limits of a parameter, or its choices."""
    if choices := schema.get("enum"):
        return f"one of {', '.join(choices)}"
    parts = []
    if (least := schema.get("minimum")) is not None:
        parts.append(f"at least {least}")
    if (most := schema.get("maximum")) is not None:
        parts.append(f"at most {most}")
    if (below := schema.get("exclusiveMaximum")) is not None:
        parts.append(f"less than {below}")
    if (longest := schema.get("maxLength")) is not None:
        parts.append(f"at most {longest} characters")
    return ", ".join(parts)
