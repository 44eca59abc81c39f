"""Rules: the right answer of a question, computed from a trace or from the result of an experiment.

A rule names the requests that it needs, and reads the answers that the API gives to them. The
server and `headlight chapter check` use the same rules, so nothing that is right is typed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from headlight.chapters.outcomes import (
    MAX_CELLS,
    Answers,
    Ask,
    Choice,
    Opens,
    Outcome,
    Place,
    Scalar,
    Where,
    best_of,
    in_words,
    number_of,
    place_of,
    quoted,
    spoken,
    texts_of,
)
from headlight.forms import Number, Request
from headlight.schemas.traces import ModelId, TraceRequest


def member(rule: Request, opens: Opens, name: str) -> Any:
    """Return a member of a rule; what the rule omits is that of the step.

    Raises:
        ValueError: neither has it.
    """
    value = getattr(rule, name)
    value = getattr(opens, name) if value is None else value
    if value is None:
        article = "an" if name[0] in "aeiou" else "a"
        raise ValueError(f"neither the rule nor the step has {article} {name}")
    return value


class OfPass(Request):
    """A rule about a pass. Whatever it omits is that of the step."""

    model: ModelId | None = None
    text: str | None = None
    target: str | None = None
    off: dict[str, Any] | None = Field(
        None, description="Heads to switch off, as in {layer: 1, heads: [0, 2]}."
    )
    bits: Number | None = Field(None, description="Weights are rounded to so many bits.")
    cut: list[str] = Field([], description="Edges to cut, as in [0.1→1.1.k].")

    def request(self, opens: Opens, **members: Any) -> Ask:
        """Return the request for a pass over the text of the rule, or of the step.

        Raises:
            ValueError: neither has a text, or the request is malformed.
        """
        edits = [
            *([{"kind": "cut", "edges": self.cut}] if self.cut else []),
            *([{"kind": "heads_off", **self.off}] if self.off is not None else []),
            *([{"kind": "quantize", "bits": self.bits}] if self.bits is not None else []),
        ]
        given = {
            "text": member(self, opens, "text"),
            "model": self.model or opens.model,
            "target": self.target or opens.target,
            "edits": edits or None,
            **members,
        }
        return Ask(trace=TraceRequest(**{k: v for k, v in given.items() if v is not None}))


class OfHead(OfPass):
    """A rule about the weights of a head."""

    where: Where | None = None
    layer: Number | None = None
    head: Number | None = None
    query: Place | None = Field(None, description="A token's number or text; -: the step's, last.")

    def asks(self, opens: Opens) -> list[Ask]:
        """Return the request for the weights of one layer."""
        return [self.request(opens, capture=[self._site(opens)])]

    def _site(self, opens: Opens) -> str:
        where = self.where or opens.where
        stack = {"encoder": "encoder", None: "*"}.get(where, "decoder")
        attention = "cross" if where == "cross" else "self"
        return f"{stack}.layers.{member(self, opens, 'layer')}.{attention}_attention.weights"

    def _weights(self, opens: Opens, answers: Answers) -> np.ndarray:
        """Return the weights (head, query, key) of the layer."""
        (trace,) = answers
        tensors = list(trace["tensors"].values())
        if len(tensors) != 1:
            raise ValueError("the model has several attentions in this layer; name one by `where`")
        return np.array(tensors[0]["data"], dtype=np.float64)

    def _head(self, opens: Opens, weights: np.ndarray) -> int:
        head: int = member(self, opens, "head")
        if head >= len(weights):
            raise ValueError(f"there is no head {head}; the layer has {len(weights)}, from 0")
        return head

    def _rows(
        self, opens: Opens, answers: Answers, sources: tuple[str, ...] = ("encoder",)
    ) -> list[str]:
        is_source = (self.where or opens.where) in sources
        return texts_of(answers[0], "tokens" if is_source else "target_tokens")

    def _columns(self, opens: Opens, answers: Answers) -> list[str]:
        return self._rows(opens, answers, ("encoder", "cross"))

    def _query(self, opens: Opens, answers: Answers) -> int:
        place = opens.query if self.query is None else self.query
        return place_of(place, self._rows(opens, answers))


class OfKey(OfHead):
    """A rule about a column of the weights of a head."""

    key: Place | None = Field(None, description="A token's number or text; -: the step's, last.")

    def _key(self, opens: Opens, answers: Answers) -> int:
        place = opens.key if self.key is None else self.key
        return place_of(place, self._columns(opens, answers))


class Weight(OfKey):
    """The weight of one cell."""

    of: Literal["weight"]

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return the number of the cell."""
        weights = self._weights(opens, answers)
        row, column = self._query(opens, answers), self._key(opens, answers)
        return number_of(float(weights[self._head(opens, weights), row, column]))


class StrongestKey(OfHead):
    """The token that a row attends to most."""

    of: Literal["strongest_key"]
    not_first: bool = Field(False, description="Leave out the first token, where many heads rest.")

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return the column, with the tokens that the row may attend to as choices."""
        weights, row = self._weights(opens, answers), self._query(opens, answers)
        numbers = weights[self._head(opens, weights), row]
        columns, first = self._columns(opens, answers), int(self.not_first)
        is_causal = (self.where or opens.where) in (None, "decoder") and not numbers[
            row + 1 :
        ].any()
        last = row + 1 if is_causal else len(columns)
        named = spoken(columns)
        return best_of((key, named[key], numbers[key]) for key in range(first, last))


class StrongestPart(OfKey):
    """The part of the query or of the key that most makes a head look at a cell."""

    of: Literal["strongest_part"]
    side: Literal["query", "key"] = "key"
    among: int = Field(4, ge=2, le=10, description="How many of the strongest to choose from.")

    def asks(self, opens: Opens) -> list[Ask]:
        """Return the request for the parts of the cell; its tokens are numbers."""
        cell = {name: member(self, opens, name) for name in ("head", "query", "key")}
        if texts := [place for place in cell.values() if isinstance(place, str)]:
            raise ValueError(f"strongest_part needs the number of {quoted(texts[0])}")
        path = self._site(opens).removesuffix(".weights").replace("*", "decoder")
        parts = {"attention": path, **cell}
        members = {"analyses": ["score_attribution"], "capture": []}
        return [self.request(opens, score_attribution=parts, **members)]

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return the name of the part, with the next strongest as choices."""
        made = answers[0]["analyses"]["score_attribution"]
        names = [part["name"] for part in made[f"{self.side}_parts"]]
        pairs = zip(names, made[f"{self.side}_side"]["data"], strict=True)
        ranked = sorted(pairs, key=lambda pair: -pair[1])[: self.among]
        return best_of((name, name, number) for name, number in ranked)


class StrongestHead(OfKey):
    """The head of a layer that gives a cell the most weight."""

    of: Literal["strongest_head"]

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return the head, with all heads of the layer as choices."""
        row, column = self._query(opens, answers), self._key(opens, answers)
        cells = self._weights(opens, answers)[:, row, column]
        return best_of((head, f"head {head}", cell) for head, cell in enumerate(cells))


class StrongestCell(OfHead):
    """The cell of a head with the most weight."""

    of: Literal["strongest_cell"]
    not_first: bool = Field(False, description="Leave out the first row and the first column.")

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return row and column, with the whole map."""
        weights = self._weights(opens, answers)
        cells = weights[self._head(opens, weights)]
        if cells.size > MAX_CELLS:
            raise ValueError(f"{cells.size} cells are more than {MAX_CELLS}; take a shorter text")
        first = int(self.not_first)
        looked_at = cells[first:, first:]
        row, column = (
            int(at) + first for at in np.unravel_index(looked_at.argmax(), looked_at.shape)
        )
        rows, columns = self._rows(opens, answers), self._columns(opens, answers)
        return Outcome(
            kind="cell",
            right=[row, column],
            label=f"{spoken(rows)[row]} attends to {spoken(columns)[column]}",
            number=float(cells[row, column]),
            rows=rows,
            columns=columns,
            cells=cells.tolist(),
        )


class StrongestExpert(OfPass):
    """The expert that the router of a layer gives a token the greatest probability."""

    of: Literal["strongest_expert"]
    layer: Number | None = None
    query: Place | None = Field(None, description="A token's number or text; -: the step's, last.")

    def asks(self, opens: Opens) -> list[Ask]:
        """Return the request for the router's probabilities in one layer."""
        site = f"decoder.layers.{member(self, opens, 'layer')}.experts.router_probs"
        return [self.request(opens, capture=[site])]

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return the expert, with all experts of the layer as choices."""
        (routed,) = answers[0]["tensors"].values()
        place = opens.query if self.query is None else self.query
        probabilities = routed["data"][place_of(place, texts_of(answers[0], "target_tokens"))]
        return best_of((at, f"expert {at}", number) for at, number in enumerate(probabilities))


class OfPrediction(OfPass):
    """A rule about what is predicted after a token, or in its place."""

    at: Place | None = Field(None, description="A token's number or text; -: the step's, or last.")
    temperature: float | None = Field(None, ge=0, description="As `headlight generate` samples.")
    top_k: Number | None = Field(None, description="The tokens that are kept, the likeliest.")
    top_p: float | None = Field(None, gt=0, le=1, description="The share that is kept.")

    @property
    def sampling(self) -> dict[str, Any]:
        """The settings that change the probabilities before a token is drawn."""
        given = {name: getattr(self, name) for name in ("temperature", "top_k", "top_p")}
        return {name: value for name, value in given.items() if value is not None}

    def asks(self, opens: Opens) -> list[Ask]:
        """Return the request for the predictions."""
        token = getattr(self, "token", None)
        tokens = {} if token is None else {"tokens": [token]}
        predictions = {"top": 20, **tokens, **self.sampling}
        return [self.request(opens, analyses=["next_token"], predictions=predictions)]

    def _place_in(self, opens: Opens, answers: Answers) -> int:
        tokens = texts_of(answers[0], "target_tokens")
        return place_of(self.at if self.at is not None else opens.query, tokens)


class NextToken(OfPrediction):
    """The likeliest token."""

    of: Literal["next_token"]
    among: int = Field(4, ge=2, le=10, description="How many of the likeliest to choose from.")

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return the likeliest token, with the next ones as choices."""
        place, predicted = self._place_in(opens, answers), answers[0]["analyses"]["next_token"]
        numbers = predicted["sampled" if self.sampling else "probabilities"]["data"]
        pairs = list(zip(predicted["texts"][place], numbers[place], strict=True))
        return best_of((text, quoted(text), number) for text, number in pairs[: self.among])


class Probability(OfPrediction):
    """The probability of a token, by default of the likeliest."""

    of: Literal["probability"]
    token: str | None = Field(None, description="Its text, with a leading space if it has one.")

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return the probability."""
        place, predicted = self._place_in(opens, answers), answers[0]["analyses"]["next_token"]
        name = "sampled" if self.sampling else "probabilities"
        if self.token is None:
            return number_of(float(max(predicted[name]["data"][place])))
        if not self.sampling:
            return number_of(float(predicted["chosen_probabilities"]["data"][place][0]))
        texts = predicted["texts"][place]
        if self.token not in texts:
            raise ValueError(f"{quoted(self.token)} is not among the 20 likeliest tokens")
        return number_of(float(predicted[name]["data"][place][texts.index(self.token)]))


class OfExperiment(Request):
    """An entry of an array of an experiment's result, or the place of its extreme."""

    of: Literal["experiment"]
    experiment: str | None = Field(None, description="Its id; if omitted, that of the step.")
    knobs: dict[str, Any] = Field(default={}, description="In place of those of the step.")
    array: str
    at: dict[str, Scalar] = Field(
        default={}, description="By axis: a value of the axis, or a number from 0."
    )
    pick: Literal["value", "greatest", "least", "where_greatest", "where_least", "last"] = "value"

    def asks(self, opens: Opens) -> list[Ask]:
        """Return the experiment with the knobs of the step, and those of the rule."""
        name = member(self, opens, "experiment")
        knobs = {**opens.knobs, **self.knobs} if name == opens.experiment else self.knobs
        return [Ask(experiment=name, knobs=knobs)]

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return the number, or the place on the one axis that is left.

        Raises:
            ValueError: there is no such array, axis or entry.
        """
        arrays = answers[0]["arrays"]
        if self.array not in arrays:
            raise ValueError(f"there is no array {self.array!r}; there are {', '.join(arrays)}")
        array = arrays[self.array]
        axes, data = list(array["axes"]), np.array(array["data"])
        if unknown := [axis for axis in self.at if axis not in axes]:
            raise ValueError(f"{self.array} has no axis {unknown[0]!r}; it has {', '.join(axes)}")
        for axis, value in self.at.items():
            at = axes.index(axis)
            data = np.take(data, _index(arrays, axis, value, data.shape[at]), axis=at)
            axes.remove(axis)
        left = ", ".join(axes)
        if self.pick == "value":
            if data.ndim:
                raise ValueError(f"{self.array} still has the axes {left}; give them too")
            return number_of(float(data))
        if self.pick.startswith("where"):
            if data.ndim != 1:
                raise ValueError(f"{self.pick} needs one axis; left are {left or 'none'}")
            values = map(str, arrays.get(axes[0], {}).get("data", range(len(data))))
            choices = ((value, value, at) for value, at in zip(values, data, strict=True))
            return best_of(choices, is_least=self.pick == "where_least")
        entries = data.ravel()
        picked = {"greatest": entries.max(), "least": entries.min(), "last": entries[-1]}
        return number_of(float(picked[self.pick]))


NumberRule = Annotated[Weight | Probability | OfExperiment, Field(discriminator="of")]


class Compare(Request):
    """Whether a second number is more than a first one, less, or about the same."""

    of: Literal["compare"]
    first: NumberRule
    second: NumberRule
    same_within: float = Field(0.05, ge=0, description="A share of the larger one.")

    def asks(self, opens: Opens) -> list[Ask]:
        """Return the requests of both."""
        return [*self.first.asks(opens), *self.second.asks(opens)]

    def outcome(self, opens: Opens, answers: Answers) -> Outcome:
        """Return `more`, `less` or `same`.

        Raises:
            ValueError: one of them is no number.
        """
        first, second = (
            rule.outcome(opens, [answer])
            for rule, answer in zip((self.first, self.second), answers, strict=True)
        )
        if first.kind != "number" or second.kind != "number":
            raise ValueError("compare needs two numbers; a rule of it picks a place")
        before, after = float(first.right), float(second.right)  # type: ignore[arg-type]
        change = after - before
        is_same = abs(change) <= self.same_within * max(abs(before), abs(after))
        right = "same" if is_same else "more" if change > 0 else "less"
        return Outcome(
            kind="choice",
            right=right,
            label=f"{right}: from {in_words(before)} to {in_words(after)}",
            choices=[Choice(value=value, label=value) for value in ("more", "less", "same")],
        )


Rule = Annotated[
    Weight
    | StrongestKey
    | StrongestHead
    | StrongestPart
    | StrongestCell
    | StrongestExpert
    | NextToken
    | Probability
    | OfExperiment
    | Compare,
    Field(discriminator="of"),
]


def _index(arrays: Mapping[str, Any], axis: str, value: Scalar, size: int) -> int:
    """Return the place of a value on an axis, or the place itself where the axis has no values."""
    values = arrays.get(axis, {}).get("data")
    if values is not None and value in values:
        return int(values.index(value))
    if isinstance(value, int) and 0 <= value < size and values is None:
        return value
    shown = ", ".join(map(str, (values or range(size))[:12]))
    raise ValueError(f"the axis {axis} has no {value!r}; it has {shown}")
