"""Training runs next to each other, as a table and as one picture."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from headlight.lab.training.config import PARTS
from headlight.lab.training.loop import METRICS
from headlight.lab.training.run import read_run
from headlight.model.checkpoint.card import flatten
from headlight.model.checkpoint.files import RUN, CheckpointError
from headlight.model.checkpoint.run_curves import curves_of
from headlight.saved_page import json_element, plotly_script

_DRAW = """
const figure = JSON.parse(document.getElementById('curves').textContent);
Plotly.newPlot('picture', figure.data, figure.layout, {responsive: true});
"""


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """A run: its name, its settings by their names, and the lines of its ``metrics.jsonl``."""

    name: str
    settings: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]

    def validations(self) -> list[tuple[float, int]]:
        """Return the held-out loss, in nats, and the step of every validation."""
        return [
            (line["valid_loss"], line["step"])
            for line in self.metrics
            if line.get("valid_loss") is not None
        ]


def read_training_runs(folders: Sequence[Path]) -> list[TrainingRun]:
    """Read the runs in some folders, and in those of them without a run the runs below it.

    Raises:
        CheckpointError: a folder holds no run, or its metrics are damaged.
    """
    return _with_names_apart([read_training_run(folder) for folder in _runs_in(folders)])


def _runs_in(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders, in place of one without a run the runs in it."""
    for folder in folders:
        inside = [] if (folder / RUN).exists() else sorted(folder.glob(f"*/{RUN}"))
        yield from (path.parent for path in inside) if inside else (folder,)


def read_training_run(folder: Path) -> TrainingRun:
    """Read the run in a folder.

    Raises:
        CheckpointError: the folder holds no run, or its metrics are damaged.
    """
    name = folder.resolve().name
    run = read_run(folder)
    settings = {"recipe": run.recipe, "corpus": ", ".join(Path(path).name for path in run.corpus)}
    settings |= dict(flatten({part: asdict(getattr(run, part)) for part in PARTS}))
    settings |= {"precision": run.precision, "from": Path(run.begun_from).name}
    return TrainingRun(name=name, settings=settings, metrics=_metrics(folder / METRICS))


def _metrics(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        # A run that is being trained may be in the middle of its last line.
        return [json.loads(line) for line in lines if line.endswith("\n")]
    except FileNotFoundError as error:
        raise CheckpointError(f"{path.parent} has made no step yet") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error


def _with_names_apart(runs: Sequence[TrainingRun]) -> list[TrainingRun]:
    """Add a number to the names of runs whose folders have one name."""
    names = [run.name for run in runs]
    return [
        replace(run, name=f"{run.name} ({number})") if names.count(run.name) > 1 else run
        for number, run in enumerate(runs, start=1)
    ]


def table_of(runs: Sequence[TrainingRun]) -> Table:
    """Return a table with a column for each run: its figures, and the settings that differ."""
    table = Table(Column("", overflow="fold"), *(run.name for run in runs), title="runs")
    for title, values in _figures(runs):
        table.add_row(title, *values)
    table.add_section()
    for name in dict.fromkeys(name for run in runs for name in run.settings):
        if len({str(run.settings.get(name, "")) for run in runs}) > 1:
            table.add_row(name, *(str(run.settings.get(name, "")) for run in runs))
    return table


def _figures(runs: Sequence[TrainingRun]) -> Iterator[tuple[str, list[str]]]:
    losses = [run.validations() for run in runs]
    last = [run.metrics[-1] if run.metrics else {} for run in runs]
    yield "steps", [f"{line.get('step', 0):,}" for line in last]
    yield "tokens", [f"{line['tokens']:,}" if "tokens" in line else "" for line in last]
    yield "hours", [f"{line['seconds'] / 3600:.2f}" if "seconds" in line else "" for line in last]
    yield "held-out loss, last", [f"{values[-1][0]:.4f}" if values else "" for values in losses]
    yield "held-out loss, lowest", [f"{min(values)[0]:.4f}" if values else "" for values in losses]
    yield "at step", [f"{min(values)[1]:,}" if values else "" for values in losses]
    for name in ("reward", "rule", "kl"):
        if any(name in line for line in last):
            yield f"{name}, last", [f"{line[name]:.3f}" if name in line else "" for line in last]


def figure_of(runs: Sequence[TrainingRun]) -> dict[str, Any]:
    """Return Plotly's data and layout: a panel for each kind of curve, a colour for each run."""
    curves = curves_of({run.name: run.metrics for run in runs})["pictures"]
    data, layout = [], {"height": 80 + 320 * len(curves), "hovermode": "x unified"}
    layout["margin"] = {"l": 70, "r": 20, "t": 40, "b": 50}
    colours = {run.name: number for number, run in enumerate(runs)}
    shown: set[str] = set()
    for number, picture in enumerate(curves):
        axis = "" if number == 0 else str(number + 1)
        top = 1 - number / len(curves)
        bottom = 1 - (number + 1) / len(curves) + 0.14 / len(curves)
        unit = f"{picture['title']} ({picture['unit']})"
        layout[f"yaxis{axis}"] = {"domain": [bottom, top], "title": {"text": unit}}
        layout[f"xaxis{axis}"] = {"anchor": f"y{axis}", "title": {"text": "step"}}
        for line in picture["lines"]:
            run = next((name for name in colours if line["name"].endswith(name)), line["name"])
            is_training = line["name"].startswith("training")
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": line["steps"],
                    "y": line["values"],
                    "name": line["name"],
                    "legendgroup": run,
                    "showlegend": line["name"] not in shown,
                    "xaxis": f"x{axis}",
                    "yaxis": f"y{axis}",
                    "line": {
                        "color": f"hsl({_hue(colours.get(run, 0))}, 65%, 42%)",
                        "dash": "dot" if is_training else "solid",
                    },
                }
            )
            shown.add(line["name"])
    return {"data": data, "layout": layout}


def _hue(number: int) -> int:
    """Return a hue in degrees; neighbours differ by the golden angle."""
    return round(number * 180 * (3 - math.sqrt(5))) % 360


def page_of(runs: Sequence[TrainingRun]) -> str:
    """Return a page with the curves that opens without a network."""
    title = escape(", ".join(run.name for run in runs))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<h1>{title}</h1>\n<div id="picture"></div>\n'
        f'<script type="application/json" id="curves">{json_element(figure_of(runs))}</script>\n'
        f"<script>{plotly_script()}</script>\n<script>{_DRAW}</script>\n"
        "</html>\n"
    )
