"""The settings of a run by their names: ``model.d_model``, ``rows.held_out``, ``loop.steps``."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.training.loop_config import LoopConfig
from headlight.model.training.recipe import Recipe

PARTS = ("model", "rows", "loop")
MOE = [f"moe.{field.name}" for field in fields(ExpertsConfig)]
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """An architecture, what decides the rows, and how to learn."""

    model: TransformerConfig
    rows: Any
    loop: LoopConfig


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe as plain data: a mapping for each of `PARTS`."""
    return {part: asdict(getattr(recipe, part)) for part in PARTS}


def merge(settings: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Put changes into settings: a mapping goes into a mapping, anything else replaces.

    Args:
        settings: changed in place.
        changes: by names with dots, ``{"loop.steps": 10}``, or nested, ``{"loop": {"steps": 10}}``.
    """
    for name, value in changes.items():
        first, _, rest = str(name).partition(".")
        new = {rest: value} if rest else value
        if isinstance(new, Mapping):
            inner = settings.get(first)
            settings[first] = dict(inner) if isinstance(inner, Mapping) else {}
            merge(settings[first], new)
        else:
            settings[first] = new


def check(settings: Mapping[str, Any], recipe: Recipe) -> Settings:
    """Settings from plain data; what it lacks is as in the recipe's dataclasses.

    Raises:
        ValueError: a setting is unknown, has another type, or a value that is not allowed.
    """
    form = create_model(
        "Settings",
        __config__=STRICT,
        model=(TransformerConfig, ...),
        rows=(type(recipe.rows), ...),
        loop=(LoopConfig, ...),
    )
    try:
        found = form.model_validate_json(json.dumps(settings, default=str))
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise ValueError("; ".join(_sentence(problem, recipe) for problem in problems)) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the settings are no plain data: {error}") from error
    return Settings(**{part: getattr(found, part) for part in PARTS})


def _sentence(problem: Mapping[str, Any], recipe: Recipe) -> str:
    """What is wrong with one setting."""
    name = ".".join(map(str, problem["loc"]))
    match problem["type"]:
        case "value_error":
            return str(problem["ctx"]["error"])
        case "unexpected_keyword_argument" | "extra_forbidden":
            return _unknown(name, recipe)
        case "missing" | "missing_argument":
            return f"{name} is missing"
        case "dataclass_type":
            rule = "be a mapping of names to values"
        case _:
            rule = problem["msg"].partition(" should ")[2] or f"be readable: {problem['msg']}"
    value = reprlib.repr(problem["input"])
    return f"{name} is {value}; it must {rule}" if name else f"the settings must {rule}"


def _unknown(name: str, recipe: Recipe) -> str:
    part = name.partition(".")[0]
    if part not in PARTS:
        return f"there is no setting {name!r}; all are of {', '.join(PARTS)}"
    names = [*settings_of(recipe)[part], *(MOE if part == "model" else [])]
    near = get_close_matches(name, [f"{part}.{each}" for each in names], n=1, cutoff=0.0)
    return f"there is no setting {name!r}; did you mean {near[0]!r}?"
