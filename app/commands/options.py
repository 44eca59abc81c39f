"""What the commands of `headlight` share: options by one name, and how a mistake is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from headlight.commands.validation_messages import name_of, settings_mistakes

if TYPE_CHECKING:
    from headlight.settings import Settings

Device = Annotated[
    str | None, typer.Option(help="auto, cpu, cuda or mps.", show_default="auto", metavar="NAME")
]
Precision = Annotated[
    str | None,
    typer.Option(help="float32 or bfloat16.", show_default="float32", metavar="NAME"),
]
ModelsDir = Annotated[
    Path | None, typer.Option(help="A directory with more models, one folder each.")
]
Model = Annotated[str | None, typer.Option(help="A model's id.", show_default="stories")]


def settings_of(**given: Any) -> Settings:
    """The environment's settings, with what was given on the command line instead."""
    from pydantic import ValidationError

    from headlight.settings import Settings

    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        fail(settings_mistakes(error, given))


def check_models_dir(settings: Settings) -> None:
    """Refuse a folder of models that somebody named and that is not there."""
    folder = settings.models_dir
    if folder is not None and not folder.is_dir():
        name = name_of("models_dir", {"models_dir": folder})
        fail(f"{name} is {folder}; there is no such folder")


def fail(message: str) -> NoReturn:
    """Say what is wrong, and end the command."""
    typer.secho(message, fg=typer.colors.RED, err=True)
    sys.exit(1)
