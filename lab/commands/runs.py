"""`headlight runs`: training runs next to each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headlight.commands.output import note, say, show, writing
from headlight.commands.parsing import Commands, option

app = Commands()


@app.command()
def runs(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Runs, or folders of runs.", metavar="DIR..."),
    ],
    out: Annotated[
        Path | None,
        option("Draw the curves of all runs on this page, which needs no network.", "FILE"),
    ] = None,
    force: Annotated[bool, option("Replace an existing file.", name="--force")] = False,
) -> None:
    """Compare training runs: their figures, the settings that differ, and their curves."""
    from headlight.lab.training.runs import page_of, read_training_runs, table_of

    trained = read_training_runs(folders)
    show(table_of(trained))
    if out is not None:
        with writing(out, is_forced=force) as file:
            file.write(page_of(trained).encode())
        say(f"the curves are in {out}")
    else:
        note("--out FILE.html draws their curves")
