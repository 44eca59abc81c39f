"""A model card: what a model was trained on, how, under which licence, and what it reaches.

A ``CARD.md`` is prose for people, headed by YAML for programs; the table of figures at its end is
written from the YAML. Mitchell et al. 2019, https://arxiv.org/abs/1810.03993.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

FENCE = re.compile(r"^---\n", re.MULTILINE)
FIGURES = "## Figures"
TABLE = re.compile(rf"^{FIGURES}\n\n(?:\|.*\n)+\Z", re.MULTILINE)
LISTS = ("trained_on", "attribution")
MAPPINGS = ("examples", "training", "metrics")
IN_YAML = {list: "list", dict: "mapping", str: "text"}


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """The card of one model.

    ``examples`` are texts worth reading with the model, by what there is to see in them;
    ``training`` holds the command, seed, steps, tokens, hours and machine; ``metrics`` the
    figures that ``headlight evaluate`` measured; ``prose`` the Markdown below the YAML.
    """

    title: str
    licence: str
    trained_on: tuple[str, ...] = ()
    attribution: tuple[str, ...] = ()
    examples: Mapping[str, str] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    prose: str = ""


def read_card(path: Path) -> ModelCard:
    """Read a ``CARD.md``.

    Raises:
        ValueError: the file is missing, or its YAML is broken or has other keys than a card.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    parts = FENCE.split(text, maxsplit=2)
    if len(parts) != 3 or parts[0]:
        raise ValueError(f"{path} must begin with YAML between two lines of '---'")
    try:
        head = yaml.safe_load(parts[1])
    except yaml.YAMLError as error:
        raise ValueError(f"{path} has broken YAML: {error}") from error
    return _card_of(head, TABLE.sub("", parts[2]).strip(), path)


def write_card(path: Path, card: ModelCard) -> None:
    """Write a card so that `read_card` gives it back."""
    head = asdict(card)
    prose = head.pop("prose")
    for name in LISTS:
        head[name] = list(head[name])
    written = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100)
    figures = _figures_section(card.metrics) if card.metrics else ""
    path.write_text(f"---\n{written}---\n\n{prose}\n{figures}", encoding="utf-8")


def flatten(figures: Mapping[Any, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """The figures of a card as pairs of name and value; nested names are joined by dots."""
    pairs: list[tuple[str, Any]] = []
    for key, value in figures.items():
        name = f"{prefix}{key}"
        pairs += flatten(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return pairs


def _figures_section(figures: Mapping[str, Any]) -> str:
    rows = "".join(f"| {name} | {value} |\n" for name, value in flatten(figures))
    return f"\n{FIGURES}\n\n| figure | value |\n|---|---|\n{rows}"


def _card_of(head: object, prose: str, path: Path) -> ModelCard:
    known = {entry.name for entry in fields(ModelCard)} - {"prose"}
    if not isinstance(head, dict) or not set(head) <= known:
        raise ValueError(f"{path}: the YAML of a card has the keys {', '.join(sorted(known))}")
    values: dict[str, Any] = dict(head)
    for name in LISTS:
        values[name] = tuple(map(str, _of_type(list, name, values.get(name) or [], path)))
    for name in MAPPINGS:
        values[name] = _of_type(dict, name, values.get(name) or {}, path)
    values["examples"] = {str(title): str(text) for title, text in values["examples"].items()}
    for name in ("title", "licence"):
        values[name] = _of_type(str, name, values.get(name), path)
    return ModelCard(prose=prose, **values)


def _of_type(kind: type, name: str, value: object, path: Path) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{path}: {name} must be a {IN_YAML[kind]}, not {value!r}")
    return value
