"""Files that are made of the requests of the API: the client's types of arguments.

`make openapi` writes them anew; `test_derived.py` compares them with the code.
"""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from headlight.schemas.atlas import AtlasSearchRequest
from headlight.schemas.circuits import CircuitRequest
from headlight.schemas.edit_kinds.form import EditForm
from headlight.schemas.generation import GenerateRequest
from headlight.schemas.traces import (
    PositionalRequest,
    TokenizeRequest,
    TraceRequest,
    TracesRequest,
)

FORMS: dict[type[BaseModel], str] = {
    TokenizeRequest: "text",
    TraceRequest: "text",
    TracesRequest: "texts",
    GenerateRequest: "text",
    CircuitRequest: "",
    PositionalRequest: "length",
    AtlasSearchRequest: "",
}
"""The requests whose fields are arguments of the client; one of them has a place."""
HEAD = '''"""The types of the client's arguments; `make openapi` makes them of the requests."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Required, SupportsIndex, TypeAlias, TypedDict

Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
Strings: TypeAlias = str | Iterable[str]
Edits: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any]]
'''
LISTS = {"str": "Strings", "SupportsIndex": "Integers", "Edit": "Edits"}


def arguments() -> str:
    """Return the module of the types of the client's arguments."""
    return "\n\n".join((HEAD, *("\n".join(_typed_dict(*each)) + "\n" for each in FORMS.items())))


def _typed_dict(form: type[BaseModel], placed: str) -> Iterator[str]:
    yield f"class {form.__name__.removesuffix('Request')}Arguments(TypedDict, total=False):"
    yield f'    """The fields of `{form.__name__}` that are given by name."""\n'
    for name, field in form.model_fields.items():
        if name == placed:
            continue
        kind = hint(field.annotation)
        may_be_none = "" if kind.endswith("None") or field.is_required() else " | None"
        yield f"    {name}: {f'Required[{kind}]' if field.is_required() else kind + may_be_none}"


def hint(kind: Any) -> str:
    """Return the type that the client takes for a type of a field."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return hint(parts[0])
    if origin in (Union, UnionType):
        if all(isinstance(each, type) and issubclass(each, EditForm) for each in parts):
            return "Edit"
        return " | ".join(dict.fromkeys(map(hint, parts)))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]".replace("'", '"')
    if origin is list:
        item = "str" if get_origin(parts[0]) is Literal else hint(parts[0])
        return LISTS.get(item, f"Iterable[{item}]")
    if kind is NoneType:
        return "None"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "Mapping[str, Any]"
    return {int: "SupportsIndex", float: "float", str: "str", bool: "bool"}.get(kind, "Any")
