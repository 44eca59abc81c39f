"""Other values of a request's fields, made from their types and limits."""

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

TEXTS = {"^[0-9a-f]{32}$": ["0123456789abcdef" * 2], r"^\d{1,7}:\d{1,7}$": ["0:1", "1:2"]}
"""Texts of the patterns that fields demand."""
LIMITS = ("ge", "gt", "le", "pattern")


def least(kind: type[BaseModel]) -> BaseModel:
    """Return a request with a value for each field that needs one; they may not go together."""
    needed = {
        name: another(field) for name, field in kind.model_fields.items() if field.is_required()
    }
    return kind.model_construct(**needed)


def changed(form: BaseModel, name: str) -> BaseModel:
    """Return a request with another value of one field."""
    value = another(type(form).model_fields[name], getattr(form, name))
    return form.model_copy(update={name: value})


def another(field: FieldInfo, now: Any = None) -> Any:
    """Return a value of a field that is not the present one, if there is another."""
    values = _values(field.annotation, _limits(field))
    return next((value for value in values if value != now), now)


def _limits(field: FieldInfo) -> dict[str, Any]:
    return {
        name: getattr(rule, name)
        for rule in field.metadata
        for name in LIMITS
        if getattr(rule, name, None) is not None
    }


def _values(kind: Any, limits: dict[str, Any]) -> list[Any]:
    if hasattr(kind, "__metadata__"):
        inner = FieldInfo.from_annotation(kind)
        return _values(inner.annotation, {**limits, **_limits(inner)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return list(arguments)
    if origin is list:
        return [[value] for value in _values(arguments[0], {})]
    if origin is dict:
        return [{}, {"a": 1}]
    if arguments:
        options = (each for each in arguments if each is not type(None))
        return [value for option in options for value in _values(option, limits)]
    if kind is bool:
        return [True, False]
    if kind in (int, float):
        first = limits.get("ge", limits.get("gt", 0))
        return [kind(first), kind(first + 1), limits.get("le")]
    if kind in (str, Any):
        return TEXTS.get(limits.get("pattern", ""), ["a", "b"])

    form = least(kind)
    return [form, *(changed(form, name) for name in [*kind.model_fields][-1:])]
