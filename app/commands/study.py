"""The work of `headlight study`: run a study, and write its tables as Parquet and one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from pydantic import ValidationError

from headlight.circuits.find import compute
from headlight.commands.output import notes, show
from headlight.commands.parsing import UsageError
from headlight.errors import Problem
from headlight.lab import lab_libraries
from headlight.model.circuits.study import (
    STUDIES,
    Answering,
    Part,
    Row,
    Study,
    StudyError,
    find_study,
    read_study,
    run_study,
    tables_of,
)
from headlight.models.registry import Registry, registry_of
from headlight.saved_page import json_element, plotly_script, style
from headlight.schemas.circuits import CircuitRequest
from headlight.settings import HOME, Settings
from headlight.static_files import logo

PAGE, PARTS = "study.html", "parts"
COLOURS = (
    "var(--beam)",
    "var(--query)",
    "var(--key)",
    "var(--ink)",
    "var(--alarm)",
    "var(--muted)",
)


def list_studies() -> None:
    """Print the studies that ship."""
    for path in sorted(STUDIES.glob("*.toml")):
        study = read_study(path)
        show(f"{path.stem}: {study.title}. {study.question}")


def run(name: str, out: Path, settings: Settings, n_workers: int = 0) -> None:
    """Run a study, or what is left of it, and write its results to a folder.

    Args:
        name: of a study that ships, or of a file.
        out: the folder.
        settings: where models are.
        n_workers: processes of Ray that share the parts; 0: they are computed here.

    Raises:
        UsageError: there is no such study, or it asks for what a request cannot have.
        ValueError: a model is unknown or has no graph.
        ImportError: pyarrow is not installed, or Ray for workers.
    """
    with lab_libraries():
        parquet = import_module("pyarrow.parquet")
        arrow = import_module("pyarrow")
    try:
        study = read_study(find_study(name))
        for part in study.parts:
            request_of(part)
    except StudyError as error:
        raise UsageError(str(error)) from error
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; name a folder for the results")
    registry = registry_of(settings)

    def here(parts: Sequence[Part]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, part in enumerate(parts):
            notes.print(f"{part.model}: {part.name} …", markup=False)
            yield number, answer_of(part, registry)

    def revision(model: str) -> str:
        try:
            return registry.describe(model).revision
        except Problem as problem:
            raise ValueError(problem.detail) from problem

    def tell(part: Part, is_kept: bool) -> None:
        state = "kept" if is_kept else "done"
        notes.print(f"{part.model}: {part.name}, {state}", markup=False)

    compute_parts = here if n_workers == 0 else with_ray(settings, n_workers)
    answers = run_study(study, out / PARTS, compute_parts, revision, tell)
    tables = tables_of(answers)
    for name_of_table, rows in tables.items():
        if rows:
            parquet.write_table(arrow.Table.from_pylist(rows), out / f"{name_of_table}.parquet")
    (out / PAGE).write_text(render(study, tables), encoding="utf-8")
    show(f"{out / PAGE}")


def answer_of(part: Part, registry: Registry) -> Mapping[str, Any]:
    """Return the answer to a part of a study.

    Raises:
        ValueError: the model is unknown or has no graph, or an edge is unknown.
    """
    try:
        model = registry.checkpoint(part.model)
        answer = compute(request_of(part), model, is_cut=part.kind == "cuts")
    except Problem as problem:
        raise ValueError(f"{part.name}, {part.model}: {problem.detail}") from problem
    return answer.model_dump(mode="json")


def with_ray(settings: Settings, n_workers: int) -> Answering:
    """Return what computes the parts of a study in processes of Ray, one part at a time in each.

    Without `RAY_ADDRESS` a cluster of this machine is started. A worker that dies is replaced, and
    its part is computed again.

    Raises:
        ImportError: Ray is not installed.
    """
    from headlight.model.atlas.workers import MISSING, Cluster

    try:
        import ray
    except ImportError as error:
        raise ImportError(MISSING) from error

    def answers(parts: Sequence[Part]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        if not parts:
            return
        with Cluster(n_workers):
            remote = ray.remote(num_cpus=1, max_retries=2)(_in_worker)
            dump = settings.model_dump(mode="json")
            waiting = {
                remote.remote(dump, asdict(part)): number for number, part in enumerate(parts)
            }
            while waiting:
                (done, *_), _ = ray.wait(list(waiting))
                answer = ray.get(done)
                if error := answer.get("error"):
                    raise ValueError(error)
                yield waiting.pop(done), answer

    return answers


def _in_worker(settings: dict[str, Any], part: dict[str, Any]) -> Mapping[str, Any]:
    import torch

    torch.set_num_threads(1)
    try:
        return answer_of(Part(**part), registry_of(Settings.model_validate(settings)))
    except ValueError as error:
        return {"error": str(error)}


def request_of(part: Part) -> CircuitRequest:
    """Return a part as a request of the API.

    Raises:
        StudyError: it asks for what a request cannot have.
    """
    try:
        return CircuitRequest.model_validate(dict(part.request))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StudyError(f"{part.name}: {where}: {first['msg']}") from error


def render(study: Study, tables: Mapping[str, Sequence[Row]]) -> str:
    """Return the page of a study as HTML that opens offline."""
    templates = Environment(loader=FileSystemLoader(HOME / "templates"), autoescape=True)
    return templates.get_template("study.html").render(
        study=study,
        tables=tables,
        styles=[style("page")],
        logo=logo(),
        figures=json_element({"curve": _curve(tables["curve"])} if tables["curve"] else {}),
        plotly=plotly_script(),
        version=version("headlight"),
    )


def _curve(rows: Sequence[Row]) -> dict[str, Any]:
    """Draw the faithfulness of each circuit over its number of edges."""
    names = dict.fromkeys((row["model"], row["name"]) for row in rows)
    lines = []
    for number, (model, name) in enumerate(names):
        of_line = [row for row in rows if (row["model"], row["name"]) == (model, name)]
        points = [row for row in of_line if row["n_edges"]]
        lines.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": f"{model}, {name}",
                "x": [row["n_edges"] for row in points],
                "y": [row["faithfulness"] for row in points],
                "line": {"color": COLOURS[number % len(COLOURS)]},
            }
        )
    line = {"zeroline": False, "gridcolor": "var(--line)", "automargin": True}
    around = {
        "height": 380,
        "margin": {"l": 56, "r": 16, "t": 12, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "var(--muted)", "size": 13},
        "xaxis": {**line, "title": {"text": "edges"}, "type": "log"},
        "yaxis": {**line, "title": {"text": "faithfulness"}},
    }
    return {"data": lines, "layout": around}
