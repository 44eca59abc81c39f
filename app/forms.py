"""The base of requests and answers, and what a field of a request says of itself.

A field says its type, meaning and limits as pydantic has them, and with `option` whether it changes
numbers, and how the command line names it. Ids, the API's document, the client, the command line,
the page's types and docs/api.md are derived from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

MAX_GLOBS = 16
MAX_GLOB_CHARACTERS = 80
MAX_NUMBERS = 256
MAX_IDS = 2**15
MAX_POSITIONS = 2**12

Glob = Annotated[str, Field(min_length=1, max_length=MAX_GLOB_CHARACTERS)]
Number = Annotated[int, Field(ge=0, lt=2**31)]
Numbers = Annotated[list[Number], Field(min_length=1, max_length=MAX_NUMBERS)]
Ids = Annotated[list[Number], Field(min_length=1, max_length=MAX_IDS)]
Positions = Annotated[list[Number], Field(min_length=1, max_length=MAX_POSITIONS)]
Token = Number | str


class Request(BaseModel):
    """A request: no value is converted to another type, and unknown members are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """An answer; a client ignores unknown members."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class TensorAnswer(Answer):
    """An array with named axes."""

    axes: list[str]
    shape: list[int] = Field(description="The shape of the whole array.")
    dtype: Literal["float32", "int32", "uint16"]
    scale: float | None = Field(None, description="For uint16: value = data × scale.")
    packed: Literal["lower-triangle"] | None = Field(
        None,
        description="The last two axes are packed into one: the numbers on and below the "
        "diagonal, row by row. If missing, the array is whole.",
    )
    fill: float | None = Field(
        None, description="The number above the diagonal of a packed array; null: -inf."
    )
    data: list[Any] = Field(
        description="Nested lists; null is -inf: masked scores, and the logits of ablated experts."
    )


class ArraysAnswer(Answer):
    """An answer whose other members are arrays by name."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, TensorAnswer]


@dataclass(frozen=True, kw_only=True)
class Said:
    """The part of a field that pydantic has no word for.

    Attributes:
        changes_numbers: an answer with another value may have other numbers.
        is_resolved: what it names is in the id in its place: the revision of a model, sites.
        selects: it chooses which of the numbers are sent, and changes none that are.
        normal: the property of the request that has its value in the one form for equal numbers.
        flag: the option of the command line; None: it has none; empty: made of the field's name.
        help: the option's help; empty: the description.
        metavar: the name of the option's value; empty: that of its type.
        shown: the default that the help shows, if it is not the field's own.
    """

    changes_numbers: bool = True
    is_resolved: bool = False
    selects: bool = False
    normal: str = ""
    flag: str | None = ""
    help: str = ""
    metavar: str = ""
    shown: str | None = None


_SAID = {field.name for field in fields(Said)}
_SAYS_NOTHING = Said()


def option(default: Any = ..., description: str | None = None, **said_and_limits: Any) -> Any:
    """Return a field of a request: what it says of itself as in `Said`, its limits as in `Field`.

    Unless it says otherwise, it changes numbers, and the command line has it.
    """
    said = {name: said_and_limits.pop(name) for name in _SAID & said_and_limits.keys()}
    field: FieldInfo = Field(default, description=description, **said_and_limits)
    field.metadata.append(Said(**said))
    return field


def said_of(field: FieldInfo) -> Said:
    """Return what a field says of itself."""
    return next((each for each in field.metadata if isinstance(each, Said)), _SAYS_NOTHING)


def identity(request: BaseModel) -> Mapping[str, Any]:
    """Return all in a request that changes numbers, as data that equal numbers have equal.

    A new field is part of it, unless the field says that it changes no number.
    """
    said = {name: said_of(field) for name, field in type(request).model_fields.items()}
    counting = {
        name: each.normal
        for name, each in said.items()
        if each.changes_numbers and not each.is_resolved
    }
    plain = request.model_dump(include={name for name, normal in counting.items() if not normal})
    return plain | {name: getattr(request, normal) for name, normal in counting.items() if normal}


def is_list(kind: Any) -> bool:
    """Return True for a type of lists, and for a union with one."""
    if get_origin(kind) is Annotated:
        return is_list(get_args(kind)[0])
    return get_origin(kind) is list or (
        get_origin(kind) in (Union, UnionType) and any(map(is_list, get_args(kind)))
    )
