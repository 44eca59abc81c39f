"""A model card: what a model was trained on, how, under which licence, and what it reaches.

A ``CARD.md`` is prose for people, headed by YAML for programs; the tables at its end are written
from the YAML. Mitchell et al. 2019, https://arxiv.org/abs/1810.03993.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from headlight.model.example import Example, example_of, in_yaml

try:  # the same in C, ten times as fast: a card's metrics are long
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader

FENCE = re.compile(r"^---\n", re.MULTILINE)
FIGURES = "## Figures"
EXPERTS = "## What the experts take"
TABLES = [
    re.compile(rf"^{heading}\n\n(?:\|.*\n)+\n?\Z", re.MULTILINE) for heading in (FIGURES, EXPERTS)
]
LISTS = ("trained_on", "attribution")
MAPPINGS = ("examples", "training", "metrics", "expert_tokens")
# What `expert_tokens` holds; a card may have been edited by hand.
EXPERT_TOKENS = {
    "text": [str],
    "tokens": int,
    "least_count": int,
    "kinds": {str: float},
    "layers": {
        str: [
            {
                "share": float,
                "kinds": {str: float},
                "tokens": [{"text": str, "share": float, "count": int}],
            }
        ]
    },
}
# A bar would end the cell of a table.
VISIBLE = str.maketrans({" ": "·", "\n": "↵", "\t": "⇥", "|": "\\|"})
YAML_MAP, YAML_SEQUENCE, YAML_TEXT = (f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str"))
MAX_DEPTH = 50
IN_YAML = {list: "list", dict: "mapping", str: "text"}


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """The card of one model.

    ``examples`` are texts worth reading with the model, by what there is to see in them, where to
    look included where somebody said so;
    ``training`` holds the command, seed, steps, tokens, hours and machine; ``metrics`` the
    figures that ``headlight evaluate`` measured, and ``expert_tokens`` what it found the experts
    to take (`headlight.model.evaluation.expert_tokens`); ``prose`` the Markdown below the YAML.
    """

    title: str
    licence: str
    trained_on: tuple[str, ...] = ()
    attribution: tuple[str, ...] = ()
    examples: Mapping[str, str | Example] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    expert_tokens: Mapping[str, Any] = field(default_factory=dict)
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
        head = _plain(_yaml(parts[1]))
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path} has broken YAML: {error}") from error
    prose = parts[2]
    for table in TABLES:
        prose = table.sub("", prose)
    return _card_of(head, prose.strip(), path)


def write_card(path: Path, card: ModelCard) -> None:
    """Write a card so that `read_card` gives it back."""
    head = asdict(card)
    head.pop("prose")
    for name in LISTS:
        head[name] = list(head[name])
    head["examples"] = {title: in_yaml(example) for title, example in card.examples.items()}
    found = head.pop("expert_tokens")
    if found:  # a dense model has none
        head["expert_tokens"] = _in_lines(found)
    written = yaml.dump(head, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(f"---\n{written}---\n\n{in_markdown(card)}", encoding="utf-8")


def in_markdown(card: ModelCard) -> str:
    """What people read of a card: its prose, and the tables that are made from its figures."""
    experts = _experts_section(card.expert_tokens) if card.expert_tokens else ""
    figures = _figures_section(card.metrics) if card.metrics else ""
    return f"{card.prose}\n{experts}{figures}"


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


def _experts_section(found: Mapping[str, Any]) -> str:
    rows = "".join(
        f"| {layer} | {number} | {100 * expert['share']:.1f} % | {_spelled(expert['tokens'])} |\n"
        for layer, experts in found["layers"].items()
        for number, expert in enumerate(experts)
    )
    head = "| layer | expert | of all tokens | most of all |\n|---|---|---|---|\n"
    return f"\n{EXPERTS}\n\n{head}{rows}"


def _spelled(tokens: Iterable[Mapping[str, Any]]) -> str:
    """Tokens as code, with spaces and line breaks that can be seen."""
    return " ".join(_code(token["text"].translate(VISIBLE)) for token in tokens)


def _yaml(text: str) -> Any:
    """What YAML says. It is refused where it nests so deep that reading it would end the process.

    Nor are aliases read: nine lines of them can stand for a billion values.

    Raises:
        YAMLError: it is broken, or too deep, or has an alias.
    """
    depth = 0
    for event in yaml.parse(text, Loader=SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.YAMLError(f"it nests more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias (*); write out what it stands for")
    return yaml.load(text, Loader=SafeLoader)


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _plain(value: Any) -> Any:
    """What YAML holds as what JSON can say: names are texts or numbers, dates are written out.

    Raises:
        ValueError: it holds what is neither, such as bytes, or a text that no encoding can carry.
    """
    if isinstance(value, dict):
        names = (name if type(name) in (int, str) else str(name) for name in value)
        return {
            _plain(name): _plain(each) for name, each in zip(names, value.values(), strict=True)
        }
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        value.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
    elif not (value is None or isinstance(value, bool | int | float)):
        raise ValueError(f"a {type(value).__name__} is nothing that a card can hold")
    return value


class _Dumper(yaml.SafeDumper):
    """Writes a `_Line` and a `_Row` on as few lines as they take, and a line break as ``\\n``."""

    def ignore_aliases(self, data: object) -> bool:
        """Write out what is there twice: `read_card` reads no aliases."""
        return True


class _Line(dict[str, Any]):
    """A mapping that is written on a line."""


class _Row(list[Any]):
    """A list that is written on a line."""


_Dumper.add_representer(
    _Line, lambda dumper, line: dumper.represent_mapping(YAML_MAP, line.items(), flow_style=True)
)
_Dumper.add_representer(
    _Row, lambda dumper, row: dumper.represent_sequence(YAML_SEQUENCE, row, flow_style=True)
)
_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        YAML_TEXT, text, style='"' if "\n" in text else ""
    ),
)


def _in_lines(found: Mapping[str, Any]) -> dict[str, Any]:
    """What the experts take, to be written with few line breaks."""
    return {
        **found,
        "kinds": _Line(found["kinds"]),
        "layers": {
            layer: [
                {
                    "share": expert["share"],
                    "kinds": _Line(expert["kinds"]),
                    "tokens": _Row(map(_Line, expert["tokens"])),
                }
                for expert in experts
            ]
            for layer, experts in found["layers"].items()
        },
    }


def _fits(value: object, shape: object) -> bool:
    """Is this plain data of the shape: types, ``[shape]``, ``{str: shape}`` or named shapes?"""
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(each, shape[0]) for each in value)
    if isinstance(shape, dict):
        if not isinstance(value, dict) or not (str in shape or set(value) == set(shape)):
            return False
        return all(
            isinstance(name, str) and _fits(each, shape.get(str) or shape[name])
            for name, each in value.items()
        )
    if shape is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, shape) and not isinstance(value, bool)  # type: ignore[arg-type]


def _card_of(head: object, prose: str, path: Path) -> ModelCard:
    known = {entry.name for entry in fields(ModelCard)} - {"prose"}
    if not isinstance(head, dict) or not set(head) <= known:
        raise ValueError(f"{path}: the YAML of a card has the keys {', '.join(sorted(known))}")
    values: dict[str, Any] = dict(head)
    for name in LISTS:
        values[name] = tuple(map(str, _of_type(list, name, values.get(name) or [], path)))
    for name in MAPPINGS:
        values[name] = _of_type(dict, name, values.get(name) or {}, path)
    if values["expert_tokens"] and not _fits(values["expert_tokens"], EXPERT_TOKENS):
        raise ValueError(
            f"{path}: expert_tokens is not as 'headlight evaluate' writes it; remove it, and "
            "measure again with --corpus"
        )
    values["metrics"] = {str(name): figure for name, figure in values["metrics"].items()}
    values["examples"] = _examples_of(values["examples"], path)
    for name in ("title", "licence"):
        values[name] = _of_type(str, name, values.get(name), path)
    return ModelCard(prose=prose, **values)


def _examples_of(written: Mapping[object, object], path: Path) -> dict[str, str | Example]:
    try:
        return {str(title): example_of(example) for title, example in written.items()}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _of_type(kind: type, name: str, value: object, path: Path) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{path}: {name} must be a {IN_YAML[kind]}, not {value!r}")
    return value
