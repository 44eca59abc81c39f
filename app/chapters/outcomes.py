"""The place that a step opens, the requests of a rule, and its outcome: the right answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from headlight.forms import Answer, Number, Request
from headlight.schemas.traces import ModelId, TraceRequest

Scalar = str | int | float
Where = Literal["encoder", "decoder", "cross"]
MAX_CELLS = 4096
"""Of a map whose numbers a page is given, to tell how far a wrong cell is off."""


NOT_SHARED = ("more", "experiment", "knobs")
"""Members of what a step opens that are no part of the page's address by this name."""


class Ask(Answer):
    """A request that a rule needs answered: a trace, or an experiment with its parameters."""

    trace: TraceRequest | None = None
    experiment: str = ""
    knobs: dict[str, Any] = Field(default={})


class Opens(Request):
    """The view of the page, or the experiment, that a step opens.

    But for the last three, the fields are the parts of the page's address that all views share:
    `make openapi` writes them for the page, in `static/js/state/address.js`.
    """

    text: str | None = Field(None, description="The text that it reads.")
    target: str | None = Field(None, description="The decoder's text in an encoder–decoder.")
    words: str | None = Field(None, description="The words behind the masks of the text.")
    model: ModelId | None = Field(None, description="The model; if omitted, the default one.")
    view: str = Field("attention", description="The id of a view.")
    where: Where | None = Field(None, description="The stack, or the attention between both.")
    layer: Number | None = Field(None, description="From 0.")
    head: Number | None = Field(None, description="From 0.")
    query: Number | None = Field(None, description="The row: the number of a token, from 0.")
    source: Number | None = Field(None, description="A token of the source.")
    key: Number | None = Field(None, description="The column.")
    range: Literal["one", "head"] = Field("one", description="Where the colours end.")
    token: Number | None = Field(None, description="The prediction that is asked about, by its id.")
    against: Number | None = Field(None, description="The token it is compared with, by its id.")
    off: str | None = Field(None, description="The head that is switched off, as in a link.")
    off_to: Literal["zero", "mean", "resample"] = Field("zero", description="It writes this then.")
    weight: float | None = Field(None, ge=0, le=1, description="The chosen cell is set to it.")
    weight_fixed: bool = Field(False, description="The rest of its row stays as it is.")
    map: Literal["effect", "writes", "template", "system", "user", "assistant", "tool"] = Field(
        "effect",
        description="What the colours of the map show: a head's effect, its share of what is "
        "written, or the share of its attention on a role of a conversation.",
    )
    more: dict[str, bool | Scalar] = Field(
        default={}, description="Other parts of a link, such as a control of the view."
    )
    experiment: str | None = Field(None, description="The id of an experiment, in place of a view.")
    knobs: dict[str, Any] = Field(default={}, description="Its parameters that are not standard.")


def address_parts() -> dict[str, dict[str, Any]]:
    """Return the parts of the page's address that all views share: the kind of each, its limits."""
    schema = Opens.model_json_schema()["properties"]
    return {name: _part(schema[name]) for name in schema if name not in NOT_SHARED}


def _part(schema: Mapping[str, Any]) -> dict[str, Any]:
    kinds = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    (kind,), standard = kinds, schema["default"]
    if "enum" in kind:
        return {"kind": "choice", "values": [*([""] if standard is None else ()), *kind["enum"]]}
    if kind["type"] == "number":
        return {"kind": "number", "least": kind["minimum"], "most": kind["maximum"]}
    named = {"integer": "count", "boolean": "flag", "string": "text"}[kind["type"]]
    return {"kind": named} | ({"standard": standard} if named == "text" and standard else {})


class Choice(Answer):
    """One of the answers to choose from."""

    value: Scalar
    label: str
    number: float | None = Field(None, description="Its weight or probability, if it has one.")


class Outcome(Answer):
    """The right answer, and the numbers that show how far another one is off."""

    kind: Literal["choice", "number", "cell"]
    right: Scalar | list[int] = Field(description="A choice's value, a number, or row and column.")
    label: str = Field(description="The right answer in words.")
    number: float | None = Field(None, description="Its weight or probability, if it has one.")
    unit: str = ""
    choices: list[Choice] = Field(default=[], description="To choose from, not by size.")
    rows: list[str] = Field(default=[], description="Of a map: the tokens that attend.")
    columns: list[str] = Field(default=[], description="Of a map: the tokens attended to.")
    cells: list[list[float]] = Field(default=[], description="The numbers of a map, by row.")


Answers = Sequence[Mapping[str, Any]]
Place = Number | str


def number_of(value: float) -> Outcome:
    """Return the outcome of a number."""
    return Outcome(kind="number", right=value, label=in_words(value), number=value)


def in_words(number: float) -> str:
    """Write a number with three digits; what is smaller than a thousandth is nearly 0."""
    if 0 < abs(number) < 1e-3:
        return "nearly 0"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def best_of(candidates: Iterable[tuple[Scalar, str, float]], *, is_least: bool = False) -> Outcome:
    """Return the greatest of values, labels and numbers, with all in the order of their labels.

    Raises:
        ValueError: there are fewer than two, or the first two are within a thousandth.
    """
    choices = [
        Choice(value=value, label=label, number=float(number))
        for value, label, number in candidates
    ]
    ranked = sorted(choices, key=lambda choice: choice.number or 0.0, reverse=not is_least)
    if len(ranked) < 2:
        raise ValueError("there is only one answer to choose from")
    best, second = ranked[:2]
    gap = abs((best.number or 0.0) - (second.number or 0.0))
    if gap <= 1e-3 * abs(best.number or 0.0):
        raise ValueError(f"{best.label} and {second.label} are equally right")
    in_order = (
        choices
        if all(isinstance(choice.value, int) for choice in choices)
        else sorted(choices, key=lambda choice: choice.label)
    )
    return Outcome(
        kind="choice", right=best.value, label=best.label, number=best.number, choices=in_order
    )


def texts_of(trace: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts of the tokens; of the only stack where there is no target."""
    return [token["text"] for token in trace.get(name) or trace["tokens"]]


def place_of(place: Place | None, tokens: Sequence[str]) -> int:
    """Return the number of a token that is given by number or text; None: the last.

    Raises:
        ValueError: the text has no such token.
    """
    if place is None:
        return len(tokens) - 1
    if isinstance(place, int):
        if place >= len(tokens):
            raise ValueError(f"there is no token {place}; the text has {len(tokens)}, from 0")
        return place
    stripped = [token.strip() for token in tokens]
    if place.strip() not in stripped:
        raise ValueError(f"the text has no token {quoted(place)}; it has {', '.join(stripped)}")
    return stripped.index(place.strip())


def spoken(tokens: Sequence[str]) -> list[str]:
    """Return each token in quotes, with its number if the text has it twice."""
    texts = [token.strip() for token in tokens]
    counts = Counter(texts)
    return [
        f"{quoted(text)} (token {at})" if counts[text] > 1 else quoted(text)
        for at, text in enumerate(texts)
    ]


def quoted(text: str) -> str:
    """Return a text in quotes, without the spaces around it."""
    return f"“{text.strip()}”"
