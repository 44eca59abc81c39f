"""The parts of a study as requests of the API: their answers, also by Ray, and their page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, FileSystemLoader
from pydantic import ValidationError

from headlight.circuits.find import compute
from headlight.model.circuits.study import Answering, Part, Row, Study, StudyError
from headlight.model.extras import needed_by
from headlight.models.registry import Registry, registry_of
from headlight.problems import Problem
from headlight.saved_page import json_element, plotly_script, style
from headlight.schemas.circuits import CircuitRequest
from headlight.settings import HOME, Settings
from headlight.static_files import logo

COLOURS = (
    "var(--beam)",
    "var(--query)",
    "var(--key)",
    "var(--ink)",
    "var(--alarm)",
    "var(--muted)",
)


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
    from headlight.model.atlas.workers import BY, Cluster

    with needed_by(BY, "Ray"):
        import ray

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
