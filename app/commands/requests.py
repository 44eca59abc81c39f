"""Options made from the fields of a request: `headlight trace`, `generate` and `circuit`.

A command of the class `of_request` has an option for each field of a request that has none in its
function, which finds the values that are given by `given`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pkgutil import resolve_name
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args, get_origin

import typer

from headlight.commands.parsing import Command, UsageError, option, reporting_errors

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

METAVARS = {int: "N", float: "X", str: "TEXT"}
PANEL = "Options of analyses"


class RequestCommand(Command):
    """A command with the options of a request, whose module is imported once they are needed."""

    form: ClassVar[str] = ""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        self.members: dict[str, Member] = {}

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters of the function, and those of the request."""
        if not self.members:
            taken = {param.name for param in self.params}
            listed = members_of(resolve_name(self.form))
            self.members = {each.name: each for each in listed if each.path[0] not in taken}
            self.params = [*_params_of(self.members), *self.params]
        return super().get_params(ctx)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the values of the request's options are for `given`."""
        ctx.obj = {}
        with reporting_errors():
            for name, member in self.members.items():
                value = ctx.params.pop(name)
                if value is not None and value is not False and value not in ([], ()):
                    member.put(value, ctx.obj)
        return super().invoke(ctx)


def of_request(form: str) -> type[RequestCommand]:
    """Return the class of a command with the options of a request, `module:class`."""
    return type("RequestCommand", (RequestCommand,), {"form": form})


def given(ctx: Any) -> dict[str, Any]:
    """Return the members of a request that the command line gives."""
    members: dict[str, Any] = ctx.obj
    return members


def flags_of(ctx: Any) -> dict[str, str]:
    """Return the option of each member of the request."""
    return {member.path[0]: member.flag for member in ctx.command.members.values()}


@dataclass(frozen=True)
class Member:
    """A field of a request, or by its ``path`` of the options in it, and the type of its value."""

    path: tuple[str, ...]
    field: FieldInfo
    kind: type
    is_list: bool

    @property
    def name(self) -> str:
        """The name of the option's value."""
        return "_".join(self.path)

    @property
    def is_json(self) -> bool:
        """True if the value is written as JSON."""
        return self.kind not in (bool, *METAVARS)

    @property
    def is_negated(self) -> bool:
        """True for a flag that switches something off."""
        return self.kind is bool and self.field.default is True

    @property
    def flag(self) -> str:
        """The option, `--top-k`."""
        from headlight.forms import said_of

        dashed = ".".join(self.path).replace("_", "-")
        return said_of(self.field).flag or ("--no-" if self.is_negated else "--") + dashed

    def parameter(self) -> inspect.Parameter:
        """Return the parameter of a function that typer makes the option of."""
        from headlight.forms import said_of

        said, default = said_of(self.field), self.field.default
        has_default = isinstance(default, int | float | str) and not isinstance(default, bool)
        words = option(
            said.help or self.field.description or "",
            said.metavar or ("JSON" if self.is_json else METAVARS.get(self.kind)),
            said.shown or (str(default) if has_default else False),
            name=self.flag,
            panel=PANEL if self.path[1:] else None,
        )
        kind: Any = str if self.is_json else self.kind
        if kind is not bool:
            kind = (list[kind] if self.is_list and not self.is_json else kind) | None
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if kind is bool else None,
            annotation=Annotated[kind, words],
        )

    def put(self, value: Any, members: dict[str, Any]) -> None:
        """Put a value that is given into the members of a request.

        Raises:
            UsageError: it should be JSON and is not.
        """
        *outer, last = self.path
        for name in outer:
            members = members.setdefault(name, {})
        if self.is_json:
            try:
                value = json.loads(value)
            except ValueError as error:
                raise UsageError(f"{self.flag} is not JSON: {error}") from error
        members[last] = not value if self.is_negated else value


def members_of(form: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[Member]:
    """Yield the fields of a request that the command line has, and those of options in it."""
    from pydantic import BaseModel

    from headlight.forms import said_of

    for name, field in form.model_fields.items():
        if said_of(field).flag is None:
            continue
        kind, is_list = _kind_of(field.annotation)
        if not is_list and issubclass(kind, BaseModel):
            yield from members_of(kind, (*path, name))
        else:
            yield Member((*path, name), field, kind, is_list)


def _kind_of(annotation: Any) -> tuple[type, bool]:
    """Return the type of an option's value, and whether it may be repeated."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind_of(arguments[0])
    if origin is list:
        return _kind_of(arguments[0])[0], True
    if origin is Literal:
        return str, False
    if origin is dict:
        return dict, False
    if arguments:
        kinds = [_kind_of(each) for each in arguments if each is not NoneType]
        return next((kind for kind in kinds if kind[0] is str), kinds[0])
    return annotation, False


def _params_of(members: dict[str, Member]) -> list[Any]:
    """Return the parameters that typer makes of a function with these options."""

    def stand_in(**_: Any) -> None: ...

    parameters = [member.parameter() for member in members.values()]
    stand_in.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    stand_in.__annotations__ = {each.name: each.annotation for each in parameters}
    app = typer.Typer(add_completion=False)
    app.command()(stand_in)
    return typer.main.get_command(app).params
