"""Where in a request something is wrong, by the names that its sender used."""

from collections.abc import Sequence
from typing import Any


def sent_names(location: Sequence[str | int], body: Any) -> list[str | int]:
    """A location without the tags by which one of several kinds was told.

    Of an edit's value pydantic says `edits.0.temperature.value`; what was sent is `edits.0.value`.

    Args:
        location: as pydantic tells it, from the body on.
        body: what was sent.
    """
    names: list[str | int] = []
    for place, part in enumerate(location):
        is_last = place == len(location) - 1
        if isinstance(body, dict) and not is_last and part == body.get("kind"):
            continue
        names.append(part)
        body = _inside(body, part)
    return names


def _inside(body: Any, part: str | int) -> Any:
    try:
        return body[part]
    except (KeyError, IndexError, TypeError):
        return None
