"""The OpenAPI document: FastAPI's, with summaries, middleware errors and examples.

`app/openapi.json` is a copy of it, for client generators and comparisons of versions;
`app/api_examples.json` holds requests and the shipped models' answers. `make openapi` renews both.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from headlight.errors import MEDIA_TYPE, described
from headlight.middleware.access import GUARDED, KEY_HEADER

FOLDER = Path(__file__).parent
DOCUMENT = FOLDER / "openapi.json"
EXAMPLES = FOLDER / "api_examples.json"

JSON = "application/json"

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": KEY_HEADER},
}

Part = dict[str, Any]


def describe_api(app: FastAPI, *, needs_key: bool) -> None:
    """Complete the OpenAPI document; with its keys, /docs asks its reader for one."""
    describe = app.openapi
    app.openapi = cache(lambda: _complete(describe(), needs_key))  # type: ignore[method-assign]


def _complete(document: Part, needs_key: bool) -> Part:
    document = _unshared(document)
    for path, operation in operations_of(document):
        _summarise(operation)
        if path.startswith(GUARDED):
            operation["responses"] |= _unshared(described(401, 429))
        operation["responses"] = dict(sorted(operation["responses"].items()))
        _exemplify(operation)
    if needs_key:
        document["components"]["securitySchemes"] = _SCHEMES
        document["security"] = [{scheme: []} for scheme in _SCHEMES]
    return document


def operations_of(document: Part) -> Iterator[tuple[str, Part]]:
    """Every operation with its path."""
    for path, methods in document["paths"].items():
        for operation in methods.values():
            yield path, operation


@cache
def examples() -> Part:
    """Requests and answers by operation, and a problem by status."""
    found: Part = json.loads(EXAMPLES.read_text())
    return found


def _unshared(part: Any) -> Any:
    """A copy without shared objects, whose keys are strings."""
    return json.loads(json.dumps(part))


def _summarise(operation: Part) -> None:
    """A function's first sentence is the summary; what follows it is the description."""
    first, _, rest = operation["description"].partition("\n\n")
    operation["summary"] = " ".join(first.split()).removesuffix(".")
    operation["description"] = rest or " ".join(first.split())


def _exemplify(operation: Part) -> None:
    shown = examples()["operations"].get(operation["operationId"], {})
    if "requestBody" in operation:
        asked = {n: _of(each, "request") for n, each in shown.items() if "request" in each}
        operation["requestBody"]["content"][JSON]["examples"] = asked
    for parameter in operation.get("parameters", ()):
        values = [each.get("parameters", {}).get(parameter["name"]) for each in shown.values()]
        if given := [value for value in values if value is not None]:
            parameter["example"] = given[0]
    for status, answer in operation["responses"].items():
        for media_type, content in answer.get("content", {}).items():
            if media_type == MEDIA_TYPE:
                problem = examples()["problems"].get("422" if status == "default" else status)
                content["example"] = problem
            elif answered := {n: _of(e, media_type) for n, e in shown.items() if media_type in e}:
                content["examples"] = answered


def _of(example: Part, what: str) -> Part:
    summary = example["shortened"] if what != "request" and "shortened" in example else None
    said = {"summary": summary} if summary else {"summary": example["summary"]}
    return {**said, "value": example[what]}
