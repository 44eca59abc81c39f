"""Errors as RFC 9457 problems, all of them.

A `Problem` is raised anywhere and answered as `application/problem+json` with `type`, `title`,
`status`, `detail` and, if a limit was exceeded, `limit` and `actual`. It repeats nothing of a
request but short names, and shows no stack trace. A browser at a wrong address gets a page.

https://www.rfc-editor.org/rfc/rfc9457
"""

import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic.fields import FieldInfo
from starlette.exceptions import HTTPException
from starlette.routing import Match

from headlight.addresses import path_of
from headlight.schemas import ProblemAnswer
from headlight.schemas.links import FRAGMENT
from headlight.serving.logs import current

MEDIA_TYPE = "application/problem+json"
MAX_ECHO = 80
MAX_ERRORS = 10
"""Errors of one body that an answer lists; its detail counts the rest."""
VALUE_ERROR_PREFIX = "Value error, "
"""Begins pydantic's message of an error that a validator raised."""
NO_OBJECT = "the body must be a JSON object"

RETRY_AFTER_SECONDS = 1
"""Retry-After of a request that may succeed a little later."""

_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_MEANINGS = {int(status): meaning for status, meaning in _SAID["meanings"].items()}
_SENTENCES: dict[str, str] = _SAID["sentences"]
_PATTERNS = {
    **_SAID["patterns"],
    FRAGMENT: "the fragment of an address as a browser writes it: ASCII, anything else escaped",
}
_OUT_OF_RANGE = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")
_NO_NUMBER = ("int_type", "int_from_float", "int_parsing", "float_type", "float_parsing")
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}}}
ANY_ERROR: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "Any other error of the request.", "content": _CONTENT},
    "5XX": {"description": "Any other error of the server.", "content": _CONTENT},
}
"""The documentation of errors that every route may return; `default` would be successes too."""


class Problem(HTTPException):
    """An error a client can read.

    Args:
        status: the HTTP status.
        kind: a short name in kebab case; `type` is `urn:headlight:problem:<kind>`.
        detail: one sentence: the value, the rule and the way out.
        headers: of the response, such as `Retry-After`.
        members: of the answer, such as `limit` and `actual`.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind
        self.members = members

    def document(self) -> dict[str, Any]:
        """Return the problem's members; its kind is noted for the log."""
        members = {
            "type": f"urn:headlight:problem:{self.kind}",
            "title": self.kind.replace("-", " ").capitalize().replace("json", "JSON"),
            "status": self.status_code,
            "detail": _printable(self.detail),
            **self.members,
        }
        if request := current.get():
            request.problem = self.kind
            members["request_id"] = request.id
        return members

    def response(self) -> Response:
        """Return the problem as a response."""
        body = orjson.dumps(self.document())
        return Response(body, self.status_code, self.headers, MEDIA_TYPE)


def echo(value: object) -> str:
    """Return a value from a request in quotes, cut to a length that suits a sentence."""
    text = str(value)
    return f"'{text if len(text) <= MAX_ECHO else text[:MAX_ECHO] + '…'}'"


def over_limit(
    what: str, *, limit: int, actual: int, way_out: str, kind: str | None = None, setting: str = ""
) -> Problem:
    """Return the problem of a request that exceeds a limit: 422; `what` is a plural noun.

    Its kind is `too-many-` with the plural, unless `kind` is given. `setting` is the environment
    variable of the limit, if an operator may change it.
    """
    detail = f"{actual:,} {what} are more than the {limit:,} that are allowed; {way_out}"
    if setting:
        detail += f" (setting {setting})"
    kind = kind or f"too-many-{what.replace(' ', '-')}"
    return Problem(422, kind, detail, limit=limit, actual=actual)


def too_many_elements(*, limit: int, actual: int, way_out: str, is_held: bool = False) -> Problem:
    """Return the problem of numbers above `max_cells` of an answer, or `max_held` of a pass."""
    what, name = ("held in memory", "HELD") if is_held else ("to send", "CELLS")
    return over_limit(
        f"numbers {what}",
        kind="too-many-cells",  # the API's name of elements
        limit=limit,
        actual=actual,
        way_out=way_out,
        setting=f"HEADLIGHT_MAX_{name}",
    )


def service_unavailable(kind: str, why: str, **members: Any) -> Problem:
    """Return a problem that may go away: 503 with Retry-After."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    detail = f"{why}; try again in {RETRY_AFTER_SECONDS} s"
    return Problem(503, kind, detail, headers=headers, **members)


def server_stopping() -> Problem:
    """Return the problem of a server that is stopping: another may take its place."""
    return service_unavailable("server-stopping", "the server is stopping")


def internal_error() -> Problem:
    """Return the problem of an unexpected exception, which the log describes."""
    return Problem(500, "internal-error", "the server could not answer this request; see its log")


def problem_from_status(error: HTTPException, request: Request) -> Problem:
    """Return the problem for an error that the framework raised, or wrote as text."""
    path, headers = echo(request.scope["path"]), error.headers
    match error.status_code:
        case 404:
            kind, detail = "not-found", f"there is nothing at {path}; /docs lists what there is"
        case 405:
            kind = "method-not-allowed"
            detail = f"{path} does not allow {echo(request.method)}; see the Allow header"
            headers = {**(headers or {}), "Allow": _allowed(request, headers or {})}
        case 413:
            return _body_too_large(request)
        case status:
            kind, detail = HTTPStatus(status).phrase.lower().replace(" ", "-"), error.detail
    return Problem(error.status_code, kind, detail, headers=headers)


def _allowed(request: Request, headers: Mapping[str, str]) -> str:
    """Return the methods of all routes at a path; GET brings HEAD with it.

    The framework names only those of the first route. Mounted files name none: they allow GET.
    """
    methods = {"GET"}
    if "Allow" in headers:
        asked = ({**request.scope, "method": method} for method in ("GET", "POST"))
        routes = request.app.routes
        methods = {
            scope["method"]
            for scope in asked
            if any(route.matches(scope)[0] is Match.FULL for route in routes)
        }
    return ", ".join(sorted({*methods, "OPTIONS"} | ({"HEAD"} if "GET" in methods else set())))


def host_refused(request: Request) -> Problem:
    """Return the problem of a Host header that is not allowed."""
    host = echo(request.headers.get("host", ""))
    way_out = "HEADLIGHT_ALLOWED_HOSTS lists the allowed hosts"
    return Problem(400, "host-refused", f"the server does not answer to the host {host}; {way_out}")


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of a route's errors."""
    return {status: {"description": _MEANINGS[status], "content": _CONTENT} for status in statuses}


class InvalidMembers(RequestValidationError):
    """Errors of a body that the route validates itself, by a model of its choice.

    Args:
        errors: those of the model, each with a location that begins with "body".
        body: the body.
        fields: those of the model.
    """

    def __init__(
        self, errors: Sequence[Mapping[str, Any]], body: Any, fields: Mapping[str, FieldInfo]
    ) -> None:
        super().__init__(errors, body=body)
        self.fields = fields


def install_problems(app: FastAPI, page: Callable[[Request, Problem], Response]) -> None:
    """Answer every exception of a route as a problem.

    Args:
        app: the application.
        page: makes the page that a browser shows at an address where there is nothing.
    """

    @app.exception_handler(HTTPException)
    async def _http_error(request: Request, error: HTTPException) -> Response:
        problem = error if isinstance(error, Problem) else problem_from_status(error, request)
        if problem.status_code == 405 and request.method == "OPTIONS":
            return Response(status_code=204, headers=problem.headers)
        is_for_reading = "text/html" in request.headers.get("accept", "")
        is_address = request.method == "GET" and not path_of(request.scope).startswith("/api/")
        if problem.status_code == 404 and is_address and is_for_reading:
            return page(request, problem)
        return problem.response()

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        if isinstance(error, InvalidMembers):
            fields = error.fields
        else:
            fields = _fields_of(request.scope.get("route"))
        return _invalid_request(error.errors(), error.body, fields).response()


def _body_too_large(request: Request) -> Problem:
    limit: int = request.app.state.settings.max_body_bytes
    declared = request.headers.get("content-length", "")
    members: dict[str, Any] = {"limit": limit}
    if declared.isdecimal() and len(declared) <= 18:
        members["actual"] = int(declared)
    detail = f"the body is longer than {limit:,} bytes; send a shorter text"
    return Problem(413, "body-too-large", detail, **members)


def _fields_of(route: object) -> dict[str, FieldInfo]:
    """Return the members of the model that a route reads, from its body or its query."""
    query = getattr(getattr(route, "dependant", None), "query_params", None) or [None]
    field = getattr(route, "body_field", None) or query[0]
    model = getattr(getattr(field, "field_info", None), "annotation", None)
    return dict(getattr(model, "model_fields", {}))


def _invalid_request(
    errors: Sequence[Mapping[str, Any]], body: Any, fields: Mapping[str, FieldInfo]
) -> Problem:
    described_errors = [_described_error(error, body, fields) for error in errors[:MAX_ERRORS]]
    shown = [f"{error['field']}: {error['message']}" for error in described_errors[:3]]
    detail = NO_OBJECT if described_errors[0]["message"] == NO_OBJECT else "; ".join(shown)
    if len(errors) > 3:
        detail += f"; and {len(errors) - 3} more"
    exceeded = {}
    if too_long := [error for error in errors if error["type"] in ("too_long", "string_too_long")]:
        first = too_long[0]
        exceeded = {"limit": first["ctx"]["max_length"], "actual": len(first["input"])}
    return Problem(422, "invalid-request", detail, errors=described_errors, **exceeded)


def _described_error(
    error: Mapping[str, Any], body: Any, fields: Mapping[str, FieldInfo]
) -> dict[str, str]:
    """Return the field and message of one error."""
    where, *names = error["loc"]
    if where not in ("body", "query", "path"):
        names = [where, *names]
    is_whole = where == "body" and not names and error["type"] != "value_error"
    message = NO_OBJECT if is_whole else _message(error, names, fields)
    field = ".".join(map(str, validation_path(names, body)))[:MAX_ECHO] or "body"
    return {"field": _printable(field), "message": message}


def _message(
    error: Mapping[str, Any], names: Sequence[str | int], fields: Mapping[str, FieldInfo]
) -> str:
    """Return the message of an error: the value, the rule, and what to send instead."""
    is_top = len(names) == 1
    if error["type"] == "extra_forbidden":
        noun = "parameter" if error["loc"][0] == "query" else "member"
        known = f"; the {noun}s are {', '.join(fields)}" if is_top and fields else ""
        return f"unknown {noun}{known}"
    bounds = _range_of(fields[str(names[0])]) if is_top and names[0] in fields else ""
    value = error["input"]
    # orjson reads an integer beyond 64 bits as a float.
    is_huge = isinstance(value, float) and abs(value) >= 2**63
    is_out_of_range = error["type"] in _OUT_OF_RANGE or (error["type"] == "int_type" and is_huge)
    if bounds and is_out_of_range:
        return f"must be {bounds}" + ("" if is_huge else f", not {_shown(value)}")
    message = validation_message(error)
    return f"{message}; it must be {bounds}" if bounds and error["type"] in _NO_NUMBER else message


def validation_message(error: Mapping[str, Any]) -> str:
    """Return the message of one of pydantic's errors: the value and the rule."""
    if (sentence := _SENTENCES.get(error["type"])) is None:
        return str(error["msg"]).removeprefix(VALUE_ERROR_PREFIX)
    context, value = dict(error.get("ctx") or {}), error["input"]
    if "pattern" in context:
        context["expected"] = _PATTERNS.get(context["pattern"], f"like {context['pattern']}")
    if "tag" in context:
        context["tag"] = context["tag"][:MAX_ECHO]
    n = len(value) if isinstance(value, str | list) else 0
    return sentence.format_map({**context, "value": _shown(value), "n": f"{n:,}"})


def _shown(value: object) -> str:
    """Format a value of a request as JSON, short enough for a sentence."""
    if isinstance(value, str):
        return echo(value)
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return json.dumps(value, default=str)[:MAX_ECHO]


def _range_of(field: FieldInfo) -> str:
    """Return the range of a number, such as "at least 0 and less than 2^63"."""
    return " and ".join(
        f"{words} {_power(bound)}"
        for rule in field.metadata
        for name, words in _BOUNDS.items()
        if (bound := getattr(rule, name, None)) is not None
    )


def _power(number: float) -> str:
    """Format a number; a large power of two as 2^n."""
    exponent = math.log2(number) if number > 2**15 else 0.5
    return f"2^{int(exponent)}" if exponent.is_integer() else str(number)


def validation_path(location: Sequence[str | int], body: Any) -> list[str | int]:
    """Return the path of an invalid member as its sender wrote it, without pydantic's union tags.

    Of an edit's value pydantic reports `edits.0.temperature.value`; the body has `edits.0.value`.
    """
    names: list[str | int] = []
    for place, part in enumerate(location):
        is_last = place == len(location) - 1
        is_tag = isinstance(body, dict) and part == body.get("kind")
        if is_tag and not (is_last and part in body):
            continue
        names.append(part)
        try:
            body = body[part]
        except (KeyError, IndexError, TypeError):
            body = None
    return names


def _printable(text: str) -> str:
    """Replace each lone surrogate, which UTF-8 cannot encode, by a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
