"""Analyses of the scores of attention: the parts that make a query look at a key."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from headlight.analyses.analysis import Analysis, AnalysisOptions, Choices, Result
from headlight.analyses.differences import (
    DifferenceAnswer,
    LogitAttribution,
    OfParts,
    attribute,
    choose,
    spelled,
    unknown_split,
)
from headlight.forms import Answer, ArraysAnswer, Number, TensorAnswer, option
from headlight.model.trace import NamedArray, Trace

if TYPE_CHECKING:
    from headlight.model.analysis.attention_thread import Step
    from headlight.model.analysis.stream_parts import Part
    from headlight.model.description import Description
    from headlight.model.served import Served

MAX_PATH_CHARACTERS = 80


class SharedPart(Answer):
    """A part and its share."""

    name: str
    share: float


class ThreadStepAnswer(Answer):
    """A part of the thread, its share, and what a cut of its edge changes."""

    name: str = Field(description="As in a circuit, `0.1`; of the kind `end`, the reason.")
    kind: Literal["token", "position", "head", "network", "constant", "distance", "end"]
    side: Literal["logits", "query", "key", ""] = Field(
        description="What read the part: the logits, or query or key of the step before."
    )
    share: float = Field(description="Of the sum that it is a part of; 1 is all of it.")
    others: list[SharedPart] = Field(description="Parts of that sum that are nearly as large.")
    opposite: SharedPart | None = Field(description="The strongest part of the other side.")
    attention: str | None
    head: int | None
    query: int | None = Field(description="Where it wrote what was read.")
    key: int | None = Field(description="The token that it read for this.")
    weight: float | None = Field(description="Of this key.")
    adds: list[float] | None = Field(
        description="Of the first step: logits that it adds to the token and to its rival, over "
        "the mean of the vocabulary."
    )
    edge: str | None = Field(description="The edge of `before` and `after`.")
    before: float | None = Field(
        description="The logit difference, or the weight of the step before, in the pass."
    )
    after: float | None = Field(description="The same with the edge cut.")


class ThreadAnswer(DifferenceAnswer):
    """The thread of a prediction, from its strongest head back to a token, in at most four steps.

    A share of a sum is no cause: `after` says what is lost without the part.
    """

    steps: list[ThreadStepAnswer]
    logits: TensorAnswer = Field(description="Of the token, and of the one it is compared with.")


class AttentionThread(OfParts):
    """The strongest head of a prediction, why it looked where it did, and so on to a token."""

    id = "attention_thread"
    needs, also = LogitAttribution.needs, LogitAttribution.also
    answer = ThreadAnswer
    reads = LogitAttribution.reads
    has_passes = True

    def reason_against(self, description: Description) -> str | None:
        return unknown_split(description)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.attention_thread import Thread
        from headlight.model.analysis.reasons import lifts_of

        difference = choose(trace, model, ask)
        split = partial(attribute, trace, model)
        arrays = split(model.linear_exit, difference).arrays
        n_ids = trace["logits"].shape[-1]
        lifts = lifts_of(split, model.linear_exit, difference, n_ids)
        steps = Thread(model, trace, difference, ask.interventions).steps(arrays, lifts)
        metadata = {**spelled(difference, model), "steps": [_told(step) for step in steps]}
        return Result({"logits": arrays["logits"]}, metadata)


def _told(step: Step) -> dict[str, Any]:
    """Return a step as plain data."""
    cell = step.cell
    plain = {name: getattr(step, name) for name in ("name", "kind", "side", "share", "weight")}
    plain |= {name: getattr(step, name) for name in ("edge", "before", "after")}
    return {
        **plain,
        "adds": None if step.adds is None else list(step.adds),
        "others": [{"name": name, "share": share} for name, share in step.others],
        "opposite": step.opposite and dict(zip(("name", "share"), step.opposite, strict=True)),
        "attention": cell and cell.path,
        "head": cell and cell.head,
        "query": cell and cell.query,
        "key": cell and cell.key,
    }


class PartAnswer(Answer):
    """A part of the stream that a query or a key is made of."""

    name: str = Field(description="As in a circuit, `0.1` or `0.ff`, or the kind.")
    kind: Literal["token", "position", "head", "network", "constant", "distance"]
    layer: int | None
    head: int | None
    edge: str | None = Field(
        description="The edge that an edit of the kind `cut` takes, so that this side reads no "
        "more of the part; null: there is none."
    )


class ScoreAttributionAnswer(ArraysAnswer):
    """The parts of a score difference, in units of the score; the scales of norms are frozen.

    `query_read` and `key_read` (token), with `split`: the share of an earlier head by the tokens
    that it read, at the query and at the key; that of the key before the rival's is subtracted.
    """

    attention: str
    head: int
    query: int
    key: int
    rival: int | None = Field(description="null: the mean of the visible keys.")
    n_visible: int = Field(description="The keys that the query sees.")
    weights: list[float] = Field(description="Of the key, and of the rival or the mean.")
    score: float = Field(
        description="The score of the key minus that of the rival, or than the mean; before a "
        "softcap. It is the sum of the table and the remainder."
    )
    remainder: float = Field(description="Of rounding, and of what edits change behind the stream.")
    query_parts: list[PartAnswer]
    key_parts: list[PartAnswer]
    notes: list[str] = Field(description="Sentences about this cell.")
    query_side: TensorAnswer = Field(description="The share of each part of the query.")
    key_side: TensorAnswer = Field(description="The share of each part of the keys.")
    table: TensorAnswer = Field(description="By part of the query and part of the keys.")


class ScoreAttribution(Analysis):
    """The parts of the stream that make a query look at a key, on both sides."""

    id = "score_attribution"
    needs = ("*.layers.0.residual.before", "*_attention.context")
    answer = ScoreAttributionAnswer
    has_passes = True

    class Options(AnalysisOptions):
        """The cell of an attention whose score is split."""

        attention: str = option(
            max_length=MAX_PATH_CHARACTERS,
            description="The path of the attention, `decoder.layers.1.self_attention`.",
        )
        head: Number = option(description="The head.")
        query: Number = option(description="The position of the query, from 0.")
        key: Number = option(description="The position of the key.")
        rival: Number | None = option(
            None,
            description="The position of the key to compare with; if omitted, the mean of the "
            "visible keys.",
        )
        split: str | None = option(
            None,
            max_length=MAX_PATH_CHARACTERS,
            description="An earlier head, such as `0.1`, whose share is split by the tokens that "
            "it read.",
        )

    def globs(self, description: Description, *, is_long: bool) -> tuple[str, ...]:
        """Return one small site: the analysis reads the text again, up to the layer of the cell."""
        return self.needs[:1]

    def reason_against(self, description: Description) -> str | None:
        """Return the reason why a model's stream is no sum of parts; None: it is one."""
        from headlight.model.analysis.head_outputs import unknown_outputs

        return description.omitted.get("sum") or unknown_outputs(description)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.score_attribution import Cell, read_by, read_for, score_parts

        asked = ask[self.Options]
        places = asked.model_dump(exclude={"attention", "split"})
        cell = Cell(path=asked.attention, **places)
        read = read_for(model, trace, cell.path, cell.query, ask.interventions)
        made = score_parts(model, read, cell, is_edited=bool(ask.interventions))
        arrays = {
            "query_side": _array(made.query_side, "query_part"),
            "key_side": _array(made.key_side, "key_part"),
            "table": _array(made.table, "query_part", "key_part"),
        }
        if asked.split is not None:
            split = read_by(model, read, cell, made, asked.split, ask.interventions)
            arrays |= {f"{side}_read": _array(row, "token") for side, row in split.items()}
        parts, notes = _told_parts(model, cell, made)
        metadata = {
            **asked.model_dump(exclude={"split"}),
            "n_visible": made.n_visible,
            "weights": list(made.weights),
            "score": made.score,
            "remainder": made.remainder,
            **parts,
            "notes": [*_notes(read, cell, bool(ask.interventions)), *notes],
        }
        return Result(arrays, metadata)


def _array(numbers: Any, *axes: str) -> NamedArray:
    return NamedArray(axes, np.ascontiguousarray(numbers, np.float32))


def _told_parts(model: Served, cell: Any, made: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the parts of both sides as plain data, with the edges that a cut takes, and notes."""
    from headlight.model.analysis.attention_thread import edge_of
    from headlight.model.circuits.graph import NoGraph
    from headlight.model.circuits.parts import parts_of

    graph, notes = None, []
    try:
        graph = parts_of(model).graph
    except NoGraph as error:
        notes.append(f"no edge can be cut: {error}")
    told = {
        f"{side}_parts": [
            {name: getattr(part, name) for name in ("name", "kind", "layer", "head")}
            | {"edge": graph and edge_of(graph, _writer(part), side, cell)}
            for part in parts
        ]
        for side, parts in (("query", made.query_parts), ("key", made.key_parts))
    }
    return told, notes


def _writer(part: Part) -> str:
    """Return the name of a part as a writer: token and position are one where they are mixed."""
    return part.name.removesuffix(" and position") if part.kind == "token" else part.name


def _notes(trace: Trace, cell: Any, is_edited: bool) -> list[str]:
    """Return sentences about a cell that a reader may not expect."""
    from headlight.model.sites import tokens_along

    notes = []
    n_keys = trace[f"{cell.path}.rows"].shape[-1]
    n_queries = len(trace.tokens if trace.target_tokens is None else trace.target_tokens)
    for axis, at, n in (("query", cell.query, n_queries), ("key", cell.key, n_keys)):
        tokens = tokens_along(trace, cell.path, axis, n)
        if at < len(tokens) and tokens[at].is_special and not tokens[at].is_typed:
            notes.append(f"the {axis} at {at} is {tokens[at].text}, which is no word of the text")
    if is_edited:
        notes.append("the parts are those of the pass with its edits")
    return notes
