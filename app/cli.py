"""The command line: the commands of `headlight.commands`, and those of other installed packages.

A package adds commands by an entry point of the group `headlight.commands`, a `Commands`; the lab
does. One whose package is not there is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Annotated

import typer

from headlight.commands import (
    add,
    atlas,
    chapter,
    chat,
    circuit,
    cluster,
    export,
    generate,
    listings,
    profile,
    serve,
    site,
    trace,
    why,
)
from headlight.commands.parsing import Commands, option
from headlight.distribution import __version__

GROUP = "headlight.commands"
MODULES = (
    *(serve, trace, why, generate, chat, circuit, profile, atlas, chapter, site),
    *(add, export, listings, cluster),
)

app = Commands(
    name="headlight",
    help="Type a sentence, watch a transformer read it.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _installed() -> Iterator[EntryPoint]:
    """Yield the entry points whose packages are there, by their names."""
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            if find_spec(point.module) is not None:
                yield point
        except ModuleNotFoundError:  # the package around it is not there
            continue


for _module in MODULES:
    app.add_typer(_module.app)
for _point in _installed():
    app.add_typer(_point.load())


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"headlight {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        option(
            "Print the version and exit.", name="--version", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options that come before a command."""


if __name__ == "__main__":
    app()
