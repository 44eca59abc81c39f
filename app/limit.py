"""A limit: a setting with a unit, a reason and what happens to who passes it.

`GET /api/v1/limits` and `headlight limits` are made from these, and so tell what holds.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import Field


def limit(default: float, unit: str, reason: str, *, refusal: str = "", **rules: Any) -> Any:
    """A field of the settings that is a limit.

    Args:
        default: its value.
        unit: what is counted, in the plural.
        reason: why there is a limit, and why this one.
        refusal: the status and the kind of the problem that more than it is answered with; empty
            where nothing is refused.
        rules: what a value must be, as `pydantic.Field` takes it.
    """
    shown: dict[str, Any] = {"unit": unit, "refusal": refusal}
    return Field(default, description=reason, json_schema_extra=shown, **rules)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit in force, as `/api/v1/limits` shows it."""

    value: int | float | dict[str, int]
    unit: str
    reason: str
    refusal: str | None
    env: str | None
