"""Parse command lines: options with their help, the settings they make, usage errors.

A command is a function in a module of `headlight.commands` that has a `Commands` named ``app``; the
function holds its options, and imports PyTorch and the rest of its work when it runs, so that
`headlight --help` does not wait for them.

A usage error ends a command with exit code 2, as Click's own do; any other failure with 1. A wrong
setting or option is reported with its name, its value and the rule:

    HEADLIGHT_QUEUE_LENGTH: must be at least 0, not '-1'
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from headlight.commands.output import STANDARD_OUTPUT, in_words

if TYPE_CHECKING:
    from pydantic import ValidationError

    from headlight.settings import Settings

USAGE_ERROR = 2
Function = TypeVar("Function", bound=Callable[..., Any])
DERIVED: dict[str, Callable[[], str]] = {}
"""Functions that make lists for the help from the code, by the mark that each list replaces."""


class UsageError(ValueError):
    """The command line breaks a rule: an unknown model, options that exclude each other."""


class Command(TyperCommand):
    """A command of typer with plainer help and errors.

    Flags and free arguments show no type, the lines of a paragraph are joined, and pydantic's
    errors have the words of the API. A mark of `DERIVED` in the help is replaced by what is made.
    Errors of the function end the command (`reporting_errors`).
    """

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        paragraphs = inspect.cleandoc(self.help or "").split("\n\n")
        self.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, with the lists that are made from code."""
        for shown in (self, *self.params):
            for mark, derive in DERIVED.items():
                if mark in (text := getattr(shown, "help", None) or ""):
                    shown.help = text.replace(mark, derive())  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, `--help` included."""
        return _without_types(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and report its errors."""
        with reporting_errors():
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                from headlight.problems import validation_message

                error.message = "; ".join(map(validation_message, error.__cause__.errors()))
            raise


class SettingsCommand(Command):
    """A command whose options are named like settings, and override their environment variables."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        for param in self.params:
            param.envvar = f"HEADLIGHT_{str(param.name).upper()}"
            if getattr(param, "multiple", False):  # else its variable is split at spaces
                param.value_from_envvar = partial(_values_at_commas, param)  # type: ignore[method-assign]


def _values_at_commas(param: Any, ctx: Any) -> list[str] | None:
    value: str | None = param.resolve_envvar_value(ctx)
    return None if value is None else [item.strip() for item in value.split(",") if item.strip()]


class Group(TyperGroup):
    """The group of the commands, with plainer help."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, `--help` included."""
        return _without_types(super().get_params(ctx))


class Commands(typer.Typer):
    """The commands of one module, or with a name a group of them."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, cls=Group, no_args_is_help=True, **options)

    def command(
        self, name: str | None = None, *, cls: Any = None, **options: Any
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds a function as a `Command`."""
        return super().command(name, cls=cls or Command, **options)


def option(
    text: str,
    metavar: str | None = None,
    shown: str | bool = True,
    *,
    name: str | None = None,
    panel: str | None = None,
    **rules: Any,
) -> Any:
    """Return an option with its help, the name of its value, and the default that is shown."""
    rules |= {"help": text, "metavar": metavar, "show_default": shown, "rich_help_panel": panel}
    return typer.Option(*([name] if name else []), **rules)


def _without_types(params: list[Any]) -> list[Any]:
    """Return the parameters; flags and free arguments show no type in the help."""
    for param in params:  # Typer 0.27 calls an option `--PORT` by the name of its value
        param.opts = [name.lower() if name.startswith("--") else name for name in param.opts]
        if isinstance(param, TyperArgument):
            kind = getattr(param, "type_descriptor", None)  # Typer has it from 0.29 on
            if kind and not kind.is_choice:
                param.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        elif param.is_flag:
            param.metavar = ""
    return params


def fail(message: str, *, code: int = 1) -> NoReturn:
    """Print an error and end the command."""
    typer.secho(message, fg=typer.colors.RED, err=True)
    sys.exit(code)


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Print an error of the block and end the command: 1, or 2 if the command line is wrong.

    The command line is wrong if the error is a `UsageError`, a missing file (as in Click) or a
    corpus that cannot be used.
    """
    try:
        yield
    except UsageError as error:
        fail(str(error), code=USAGE_ERROR)
    except (ValueError, OSError, ImportError) as error:
        is_missing = isinstance(error.__cause__ or error, FileNotFoundError)
        fail(in_words(error), code=USAGE_ERROR if is_missing or _is_of_corpus(error) else 1)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a ValueError of the block into a `UsageError`, unless a file is at fault."""
    try:
        yield
    except ValueError as error:
        from headlight.model.checkpoint.files import CheckpointError

        if isinstance(error, CheckpointError) or _is_of_corpus(error):
            raise
        raise UsageError(str(error)) from error


def _is_of_corpus(error: Exception) -> bool:
    from headlight.model.unpacking import CorpusError

    return isinstance(error, CorpusError)


def settings_of(**options: Any) -> Settings:
    """Return the settings of the environment, overridden by options that are not None."""
    from pydantic import ValidationError

    from headlight.settings import Settings

    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        message = error_lines(error, lambda location: _name_of(str(location[0]), options))
        fail(message, code=USAGE_ERROR)


def settings_with_models(**options: Any) -> Settings:
    """Return the settings as `settings_of`; end the command if a named directory is missing."""
    settings = settings_of(**options)
    folder = settings.models_dir
    if folder is not None and not folder.is_dir():
        name = _name_of("models_dir", {"models_dir": folder})
        fail(f"{name} is {folder}; there is no such folder", code=USAGE_ERROR)
    return settings


def one_format(*, as_json: bool, as_csv: bool, out: Path) -> None:
    """Raise UsageError unless a table is asked for as JSON or as CSV, and has a file only then."""
    if as_json and as_csv:
        raise UsageError("choose one of --json and --csv")
    if out != STANDARD_OUTPUT and not (as_json or as_csv):
        raise UsageError("--out is the file for --json or --csv; add one of them")


def folder_of(model: str, settings: Settings | None = None) -> Path:
    """Return the folder of a model, given its id or its folder.

    Raises:
        UsageError: there is none.
    """
    from headlight.model.checkpoint.files import CheckpointError
    from headlight.model.checkpoint.loading import find_model

    try:
        return find_model(model, settings.own_models_dir if settings else None)
    except CheckpointError as error:
        raise UsageError(str(error)) from error


def chosen_models(values: Sequence[str] | None) -> dict[str, Any]:
    """Return the settings of `--model`: the first value is the default, and all but it are folders.

    A value is a folder if it begins with a dot or a tilde, or holds a slash; others are ids.
    """
    folders = []
    for place, value in enumerate(values or ()):
        is_folder = value.startswith((".", "~")) or "/" in value or os.sep in value
        folder = Path(value).expanduser()
        if is_folder and not folder.is_dir():
            fail(f"--model is {value}; there is no such folder", code=USAGE_ERROR)
        if is_folder:
            folders.append(str(folder.resolve()))
        elif place:
            fail(
                f"--model is {value}; only the first can be an id, as it is the default model; "
                "name a folder as ./folder",
                code=USAGE_ERROR,
            )
    if not values:
        return {"default_model": None}
    default = Path(folders[0]).name if len(folders) == len(values) else values[0]
    return {"default_model": default, "model_folders": tuple(folders) or None}


def option_of(setting: str) -> str:
    """Return the option that sets a setting or a member of a request."""
    return f"--{setting.removeprefix('default_').replace('_', '-')}"


def request_errors(
    error: ValidationError, request: Mapping[str, Any], flags: Mapping[str, str]
) -> str:
    """Return a line for every wrong option of those that make a request, named as in `flags`."""
    from headlight.problems import validation_path

    def name(location: Sequence[str | int]) -> str:
        first, *places = validation_path(location, request)
        whole = "the text" if first == "text" else flags.get(str(first), option_of(str(first)))
        return ".".join([whole, *map(str, places)])

    return error_lines(error, name)


def _name_of(setting: str, options: Mapping[str, Any]) -> str:
    """Return the source of a setting: the option if it was given, else the variable."""
    variable = f"HEADLIGHT_{setting.upper()}"
    value = options.get(setting)
    is_option = value is not None and os.environ.get(variable) != str(value)
    return option_of(setting) if is_option else variable


def error_lines(error: ValidationError, name: Callable[[Sequence[str | int]], str]) -> str:
    """Return a line for every error; `name` names what is wrong by its location."""
    from headlight.problems import validation_message

    return "\n".join(
        f"{name(details['loc'])}: "
        + (
            "unknown member"
            if details["type"] == "extra_forbidden"
            else validation_message(details)
        )
        for details in error.errors()
    )
