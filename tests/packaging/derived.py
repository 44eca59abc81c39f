"""Files that are made of the API: the client's types of arguments, and the page's types.

`make openapi` writes them anew; `test_derived.py` compares them with the code.
"""

import json
import re
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from headlight.chapters.chapter import Chapter
from headlight.chapters.outcomes import Opens, Outcome, address_parts
from headlight.forms import said_of
from headlight.routes.chapters import ChaptersAnswer
from headlight.schemas.atlas import AtlasSearchRequest
from headlight.schemas.circuits import CircuitRequest
from headlight.schemas.edit_kinds.form import EditForm
from headlight.schemas.generation import GenerateRequest
from headlight.schemas.traces import (
    PositionalRequest,
    TokenizeRequest,
    TraceOptions,
    TraceRequest,
    TracesRequest,
)

FORMS: dict[type[BaseModel], str] = {
    TokenizeRequest: "text",
    TraceOptions: "",
    TraceRequest: "text",
    TracesRequest: "texts",
    GenerateRequest: "text",
    CircuitRequest: "",
    PositionalRequest: "length",
    AtlasSearchRequest: "",
}
"""The forms whose fields are arguments of the client; one field of each may have a place."""
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
    parents = [parent for parent in FORMS if parent is not form and issubclass(form, parent)]
    bases = ", ".join(map(_arguments_of, parents)) or "TypedDict"
    yield f"class {_arguments_of(form)}({bases}, total=False):"
    yield f'    """The fields of `{form.__name__}` that are given by name."""\n'
    known = {placed}.union(*(parent.model_fields for parent in parents))
    for name, field in form.model_fields.items():
        if name in known:
            continue
        kind = hint(field.annotation)
        may_be_none = "" if kind.endswith("None") or field.is_required() else " | None"
        yield f"    {name}: {f'Required[{kind}]' if field.is_required() else kind + may_be_none}"


def _arguments_of(form: type[BaseModel]) -> str:
    return f"{form.__name__.removesuffix('Request')}Arguments"


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


TYPES = """// The requests and answers of the API as the page's types; `make openapi` makes them.

/** A request with some of its members, of which none is null. */
export type Given<Form> = { [Name in keyof Form]?: NonNullable<Form[Name]> };

/** All members that some form of a union has, of which none is null. */
export type Merged<Forms> = {
  [Name in Forms extends any ? keyof Forms : never]?: Forms extends any
    ? Name extends keyof Forms
      ? NonNullable<Forms[Name]>
      : never
    : never;
};
"""
MOST_NAMES = 8
"""Of more values a type is not worth its list."""
OF_PAGE = ("TraceRequest", "CircuitRequest", "CircuitAnswer", "TasksAnswer")
OF_PAGE += ("ModelSummary", "ModelAnswer", "ModelsAnswer", "TokenAnswer", "PositionalAnswer")
OF_PAGE += ("AtlasAnswer", "AtlasHeadAnswer", "AtlasSearchAnswer", "AtlasMatchesAnswer")
OF_PAGE += ("AtlasSpreadAnswer",)
OF_PAGE += ("LinkAnswer", "GenerateRequest", "CandidateAnswer", "TokenWritten", "Ended")
OF_PAGE += ("ExperimentAnswer", "TensorAnswer")
HIDDEN = (Chapter, ChaptersAnswer, Outcome)
"""Requests of the page that the document of the API leaves out."""


def page_types(document: dict[str, Any]) -> str:
    """Return the types of the page's requests and answers, and of all that they hold."""
    _, hidden = models_json_schema(
        [(form, "serialization") for form in HIDDEN], ref_template="#/components/schemas/{model}"
    )
    for schema in hidden["$defs"].values():
        schema["required"] = [*schema["properties"]]  # an answer has those with defaults, too
    schemas = hidden["$defs"] | document["components"]["schemas"]
    wanted, shown = [*OF_PAGE, *(form.__name__ for form in HIDDEN)], dict[str, str]()
    while wanted:
        if (name := wanted.pop()) not in shown:
            shown[name] = "\n".join(_interface(name, schemas[name]))
            wanted += re.findall(r"#/components/schemas/(\w+)", json.dumps(schemas[name]))
    return "\n".join((TYPES, *_state(), *(shown[name] for name in sorted(shown))))


def _state() -> Iterator[str]:
    kinds = {"text": "string", "count": "number | null", "number": "number | null"}
    yield "/** The parts of the page's state that all views share, as a chapter may open them. */"
    yield "export interface SharedState {"
    for name, part in address_parts().items():
        kind = kinds.get(part["kind"]) or " | ".join(map(repr, part.get("values", ["boolean"])))
        yield f"  /** {Opens.model_fields[name].description} */"
        yield f"  {name}: {kind if part['kind'] != 'flag' else 'boolean'};"
    yield "}\n"


def _interface(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"export interface {name} {{"
    for member, each in schema["properties"].items():
        optional = "" if member in schema.get("required", ()) else "?"
        yield f"  {member}{optional}: {typescript(each)};"
    yield "}\n"


def typescript(schema: dict[str, Any]) -> str:
    """Return a JSON Schema as a type of TypeScript."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if kinds := schema.get("anyOf") or schema.get("oneOf"):
        # Which of two equal unions comes first depends on which module was imported first.
        return " | ".join(
            sorted(set(map(typescript, kinds)), key=lambda kind: (kind == "null", kind))
        )
    if "const" in schema or "enum" in schema:
        values = schema.get("enum") or [schema["const"]]
        return " | ".join(map(repr, values)) if len(values) < MOST_NAMES else "string"
    kind = schema.get("type")
    if kind == "array" and "prefixItems" in schema:
        return f"[{', '.join(map(typescript, schema['prefixItems']))}]"
    if kind == "array":
        items = schema.get("items", {})
        item = "string" if "enum" in items else typescript(items)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object" and "properties" not in schema:
        values = schema.get("additionalProperties", True)
        return f"Record<string, {typescript(values) if isinstance(values, dict) else 'any'}>"
    plain = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}
    return plain.get(str(kind), "null" if kind == "null" else "any")


ADDRESS = """/**
 * The parts of the page's address that all views share, as a chapter may open them; `make openapi`
 * makes them of `Opens`.
 */

/** @type {Readonly<Record<string, any>>} */
export const PARTS = Object.freeze({
"""


def address() -> str:
    """Return the module of the shared parts of the page's address."""
    rows = (_row(name, _literal(part)) for name, part in address_parts().items())
    return f"{ADDRESS}{''.join(rows)}}});\n"


def _row(name: str, literal: str) -> str:
    """Return a member; one that is too long for a line has a line for each of its own."""
    row = f"  {name}: {literal},\n"
    if len(row) <= 101:
        return row
    inside = re.sub(r", (?=\w+: )", ",\n    ", literal[2:-2])
    return f"  {name}: {{\n    {inside},\n  }},\n"


def _literal(part: dict[str, Any]) -> str:
    values = {
        name: f"[{', '.join(map(repr, value))}]" if isinstance(value, list) else repr(value)
        for name, value in part.items()
    }
    return f"{{ {', '.join(f'{name}: {value}' for name, value in values.items())} }}"


CALLS = """/** Of the API what the code of a request needs to know; `make openapi` makes it. */

/** Members of requests that choose which numbers are sent, and in which form. */
export const SELECTING = [
%s];

/** The paths that answer with nothing but Server-Sent Events. */
export const STREAMED = [%s];
"""


def calls(document: dict[str, Any]) -> str:
    """Return the module of what the code of a request needs to know of the API."""
    said = [(name, said_of(each)) for form in FORMS for name, each in form.model_fields.items()]
    selecting = {name for name, each in said if each.selects or not each.changes_numbers}
    streamed = [
        path
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if [*operation["responses"].get("200", {}).get("content", ())] == ["text/event-stream"]
    ]
    rows = "".join(f"  {name!r},\n" for name in sorted(selecting))
    return CALLS % (rows, ", ".join(map(repr, streamed)))
