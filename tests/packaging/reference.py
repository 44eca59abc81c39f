"""The reference of the API as a document, docs/api.md, made of the code that it describes."""

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from headlight import Client
from headlight.analyses.analysis_registry import ANALYSES
from headlight.commands.requests import members_of
from headlight.forms import said_of
from headlight.main import create_app
from headlight.models.model_registry import registry_of
from headlight.schemas.circuits import CircuitRequest
from headlight.schemas.edits import KINDS
from headlight.schemas.generation import GenerateRequest
from headlight.schemas.traces import TraceRequest, TracesRequest
from headlight.settings import FIXED, Settings, fixed_limit, variable_of

COMMANDS = (TraceRequest, GenerateRequest, CircuitRequest)
"""The requests that a command makes."""
SEVERAL = ("texts", "ids", "targets")
INTRODUCTION = """# The API

`make openapi` makes this page of the code, and a test compares them. A server shows the same, with
examples to try, at `/docs`; `headlight settings` prints the settings in force."""
MODELS = ("stories", "translate", "fill")
"""Models that ship, one of each kind: a decoder, a translator, an encoder."""


def reference(models: Iterable[str] = MODELS) -> str:
    """Return the page, with the sites of some models."""
    document = create_app(Settings(device="cpu")).openapi()
    parts = (
        _python(),
        _rest(document),
        _requests(),
        _analyses(),
        _edits(),
        _sites(models),
        _settings(),
    )
    return "\n\n".join((INTRODUCTION, *("\n".join(part) for part in parts))) + "\n"


def _python() -> Iterator[str]:
    yield "## Python\n"
    yield "`AsyncClient` has the same methods, to be awaited; their arguments are the requests'.\n"
    methods = inspect.getmembers(Client, inspect.isfunction)
    rows = (
        (f"`{name}({', '.join(_arguments(method))})`", _first(inspect.getdoc(method)))
        for name, method in methods
        if not name.startswith("_")
    )
    yield from _table(("method of `Client`", "meaning"), rows)


def _arguments(method: Any) -> Iterator[str]:
    _, *parameters = inspect.signature(method).parameters.values()
    named = [each for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    yield from (each.name for each in named)
    yield from ("…",) if len(named) < len(parameters) else ()


def _rest(document: Mapping[str, Any]) -> Iterator[str]:
    yield "## REST\n"
    rows = (
        (f"`{verb.upper()} {path}`", operation["summary"].removesuffix("."))
        for path, operations in document["paths"].items()
        for verb, operation in operations.items()
    )
    yield from _table(("address", "answer"), rows)


def _requests() -> Iterator[str]:
    yield "## Requests\n"
    yield "A field is part of the id under which an answer is kept, unless it changes no number."
    for form in COMMANDS:
        yield f"\n### {form.__name__}\n\n{_first(form.__doc__)}\n"
        yield from _fields(form, flags_of(form))
    yield "\n### TracesRequest\n\nAs `TraceRequest`, with these in place of its own.\n"
    yield from _fields(TracesRequest, {}, SEVERAL)


def flags_of(form: type[BaseModel], *outer: str) -> dict[str, str]:
    """Return the options of the command line by field."""
    members = (each for each in members_of(form) if each.path[:-1] == outer)
    return {member.path[-1]: member.flag for member in members}


def _fields(
    form: type[BaseModel], flags: Mapping[str, str], names: Iterable[str] = ()
) -> Iterator[str]:
    properties = form.model_json_schema()["properties"]
    rows = (
        (
            f"`{name}`",
            _type(properties[field.alias or name]),
            "required" if field.is_required() else f"`{json.dumps(field.default)}`",
            f"`{flags[name]}`" if name in flags else "",
            " ".join(filter(None, (_plain(field.description), _numbers(field)))),
        )
        for name, field in form.model_fields.items()
        if name != "kind" and name in (names or form.model_fields)
    )
    yield from _table(("field", "type", "default", "option", "meaning"), rows)


def _numbers(field: Any) -> str:
    return "" if said_of(field).changes_numbers else "Changes no number."


def _analyses() -> Iterator[str]:
    yield "## Analyses\n"
    rows = (
        (
            f"`{name}`",
            analysis.description,
            ", ".join(f"`{glob}`" for glob in analysis.needs),
            ", ".join(f"`{kind.member}`" for kind in analysis.options),
        )
        for name, analysis in ANALYSES.items()
    )
    yield from _table(("name", "meaning", "reads", "options"), rows)
    options = {kind.member: kind for each in ANALYSES.values() for kind in each.options}
    for member, kind in options.items():
        yield f"\n### {member}\n\n{_first(kind.__doc__)}\n"
        yield from _fields(kind, flags_of(TraceRequest, member))


def _edits() -> Iterator[str]:
    yield "## Edits"
    for name, form in KINDS.items():
        yield f"\n### {name}\n\n{_first(form.__doc__)}\n"
        yield from _fields(form, {})


def _sites(models: Iterable[str]) -> Iterator[str]:
    yield "## Sites\n"
    yield f"Of the models {', '.join(models)}; `N` is a layer. Other models may have others."
    registry = registry_of(Settings(device="cpu"))
    axes: dict[str, str] = {}
    for model in models:
        for site in registry.describe(model).sites:
            name = re.sub(r"\.\d+\.", ".N.", site.name)
            axes.setdefault(name, ", ".join(axis for axis in site.axes if axis != "batch"))
    yield from ("", *_table(("site", "axes"), ((f"`{name}`", axes[name]) for name in axes)))


def _settings() -> Iterator[str]:
    yield "## Settings\n"
    rows = (
        (f"`{variable_of(name)}`", f"`{_default(field.default)}`", _plain(field.description))
        for name, field in Settings.model_fields.items()
    )
    yield from _table(("variable", "default", "meaning"), rows)
    yield "\n### Fixed limits\n"
    fixed = (
        (f"`{name}`", f"`{limit.value}`", f"{limit.unit}: {limit.reason}")
        for name, limit in ((name, fixed_limit(name, value)) for name, value in FIXED.items())
    )
    yield from _table(("limit", "value", "meaning"), fixed)


def _default(value: Any) -> str:
    return str(value) if isinstance(value, int | float | str | tuple) else "none"


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema or "oneOf" in schema:
        kinds = (_type(each) for each in schema.get("anyOf") or schema["oneOf"])
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "$ref" in schema:
        return "object"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "enum" in schema and len(schema["enum"]) < 6:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    least, most = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    limits = [f"from {least}"] * (least is not None) + [f"to {most}"] * (most is not None)
    return " ".join((str(schema.get("type", "any")), *limits))


def _first(text: str | None) -> str:
    return _plain((text or "").partition("\n\n")[0])


def _plain(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = tuple(head)
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        cells = (cell.replace("|", r"\|") for cell in row)
        yield f"| {' | '.join(cells)} |".replace("  ", " ")
