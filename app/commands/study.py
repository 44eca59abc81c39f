"""`headlight study`: run a study, and write its tables as Parquet and one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headlight.commands.options import Device, ModelsDir
from headlight.commands.output import note, show
from headlight.commands.parsing import Commands, UsageError, option, settings_with_models
from headlight.model.extras import needed_by

if TYPE_CHECKING:
    from headlight.model.circuits.study import Part

app = Commands()

PAGE, PARTS = "study.html", "parts"


@app.command()
def study(
    file: Annotated[
        str | None,
        typer.Argument(help="A study that ships, or a TOML file.", metavar="FILE"),
    ] = None,
    out: Annotated[
        Path, option("The folder for the tables, the page and what is kept.", "FOLDER")
    ] = Path("study"),
    workers: Annotated[
        int,
        option("Processes of Ray that share the parts; 0: this one computes them.", "N", min=0),
    ] = 0,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Run a study of circuits, and write Parquet tables and one page that opens offline.

    Without FILE the studies that ship are listed. A study that was interrupted goes on where it
    stopped; one that is done is only written again.
    """
    from headlight.circuits.study import answer_of, render, request_of, with_ray
    from headlight.model.circuits.study import (
        StudyError,
        find_study,
        read_study,
        run_study,
        tables_of,
    )
    from headlight.models.registry import registry_of
    from headlight.problems import Problem

    if file is None:
        list_studies()
        return
    settings = settings_with_models(device=device, models_dir=models_dir)
    with needed_by("a table of a study", "PyArrow"):
        parquet, arrow = import_module("pyarrow.parquet"), import_module("pyarrow")
    try:
        study = read_study(find_study(file))
        for part in study.parts:
            request_of(part)
    except StudyError as error:
        raise UsageError(str(error)) from error
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; name a folder for the results")
    registry = registry_of(settings)

    def here(parts: Sequence[Part]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, part in enumerate(parts):
            note(f"{part.model}: {part.name} …")
            yield number, answer_of(part, registry)

    def revision(model: str) -> str:
        try:
            return registry.describe(model).revision
        except Problem as problem:
            raise ValueError(problem.detail) from problem

    def tell(part: Part, is_kept: bool) -> None:
        state = "kept" if is_kept else "done"
        note(f"{part.model}: {part.name}, {state}")

    compute_parts = here if workers == 0 else with_ray(settings, workers)
    answers = run_study(study, out / PARTS, compute_parts, revision, tell)
    tables = tables_of(answers)
    for name_of_table, rows in tables.items():
        if rows:
            parquet.write_table(arrow.Table.from_pylist(rows), out / f"{name_of_table}.parquet")
    (out / PAGE).write_text(render(study, tables), encoding="utf-8")
    show(f"{out / PAGE}")


def list_studies() -> None:
    """Print the studies that ship."""
    from headlight.model.circuits.study import STUDIES, read_study

    for path in sorted(STUDIES.glob("*.toml")):
        study = read_study(path)
        show(f"{path.stem}: {study.title}. {study.question}")
