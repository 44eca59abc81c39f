"""An example on a model's card: a text, and where to look to see what there is to see in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

WORDS = ("view", "where")
COUNTS = ("layer", "head", "query", "source")


@dataclass(frozen=True, kw_only=True)
class Example:
    """A text worth reading with a model.

    ``view`` is what of the page shows it, ``where`` the encoder, the decoder or what lies between
    them (`cross`), ``layer`` and ``head`` which map, ``query`` and ``source`` which token of the
    text that is predicted and of the source; all counted from 0, none of them needed.
    """

    text: str
    view: str | None = None
    where: str | None = None
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    source: int | None = None

    @property
    def opens(self) -> dict[str, str | int]:
        """Where to look, without the text."""
        found = {name: getattr(self, name) for name in (*WORDS, *COUNTS)}
        return {name: value for name, value in found.items() if value is not None}


def example_of(written: object) -> str | Example:
    """An example as a card's YAML has it: a text, or a text and where to look.

    Raises:
        ValueError: it says something else.
    """
    if not isinstance(written, Mapping):
        return str(written)
    known = ("text", *WORDS, *COUNTS)
    if unknown := set(written) - set(known):
        raise ValueError(
            f"an example has the keys {', '.join(known)}, not {min(map(str, unknown))}"
        )
    for name, value in written.items():
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if name in COUNTS and not is_count:
            raise ValueError(f"an example's {name} is a whole number from 0 on, not {value!r}")
        if name not in COUNTS and not isinstance(value, str):
            raise ValueError(f"an example's {name} is a text, not {value!r}")
    if "text" not in written:
        raise ValueError("an example needs a text")
    return Example(**written)


def in_yaml(example: str | Example) -> str | dict[str, Any]:
    """An example as `example_of` reads it."""
    if isinstance(example, str):
        return example
    return {name: value for name, value in asdict(example).items() if value is not None}
