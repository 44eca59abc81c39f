"""The base of requests and answers, and what a field of a request says of itself.

A field says its type, meaning and limits as pydantic has them, and with `option` whether it changes
numbers, and how the command line names it. Ids, the API's document, the client, the command line,
the page's types and docs/api.md are derived from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo


class Request(BaseModel):
    """A request: no value is converted to another type, and unknown members are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """An answer; a client ignores unknown members."""

    model_config = ConfigDict(frozen=True)


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

    An id is made of it, and the command line: see `option`.

    Attributes:
        changes_numbers: an answer with another value may have other numbers.
        is_resolved: what it names is in the id in its place: the revision of a model, sites.
        normal: the property of the request that has its value in the one form for equal numbers.
    """

    changes_numbers: bool = True
    is_resolved: bool = False
    normal: str = ""


_SAYS_NOTHING = Said()


def option(
    default: Any = ...,
    description: str | None = None,
    *,
    changes_numbers: bool = True,
    is_resolved: bool = False,
    normal: str = "",
    **limits: Any,
) -> Any:
    """Return a field of a request, which changes numbers unless it says otherwise.

    `limits` are those of `pydantic.Field`, the others as in `Said`.
    """
    field: FieldInfo = Field(default, description=description, **limits)
    said = Said(changes_numbers=changes_numbers, is_resolved=is_resolved, normal=normal)
    field.metadata.append(said)
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
