"""Circuits: the pairs of a request, and the edges and figures of an answer."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from headlight.forms import Answer, Request, option

MAX_PAIRS = 128
MAX_STEPS = 32
MAX_EDGES = 2_000
MAX_ANSWERS = 100
MAX_TEXT = 2_000

Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
Method = Literal["eap", "eap_ig", "noising", "denoising", "exact"]


class PairRequest(Request):
    """A clean text, a corrupted one of as many tokens, and the tokens right and wrong after it."""

    clean: Text
    corrupted: Text
    right: Annotated[list[Text], Field(min_length=1, max_length=MAX_ANSWERS)] | Text = Field(
        description="A text of one token, such as ` were`, or several."
    )
    wrong: Annotated[list[Text], Field(min_length=1, max_length=MAX_ANSWERS)] | Text
    target: Text | None = Field(
        None, description="Of an encoder–decoder: what its decoder has written of the clean text."
    )
    corrupted_target: Text | None = Field(None, description="If omitted, `target`.")


class CircuitSettings(Request):
    """How the edges of a circuit are chosen, and on which task."""

    task: str | None = Field(
        None, max_length=40, description="A task that ships: `GET /api/v1/tasks` lists them."
    )
    n_pairs: int = option(
        32,
        flag="--pairs",
        help="The pairs of a task that ships.",
        ge=2,
        le=MAX_PAIRS,
        description="Of the task.",
    )
    score: Method = option(
        "eap_ig",
        help="eap, eap_ig, noising, denoising or exact.",
        description="eap, eap_ig: by gradients. noising, denoising, exact (their mean): by one run "
        "for each edge.",
    )
    steps: int = option(
        5,
        help="Of eap_ig.",
        ge=1,
        le=MAX_STEPS,
        description="Of eap_ig: gradients at (k + ½)/steps between texts.",
    )
    rule: Literal["top", "greedy", "pruned"] = option(
        "pruned",
        help="How edges are chosen: top, greedy or pruned.",
        description="top: the largest scores by size. greedy: from the logits back. pruned: of "
        "three times as many, those that the run of the circuit needs most.",
    )
    baseline: Literal["corrupted", "zero", "mean"] = option(
        "corrupted",
        help="What cut edges carry: corrupted, zero or mean.",
        description="What cut edges carry: the corrupted text's, zero, or the mean of each writer "
        "over all positions of the corrupted texts.",
    )
    n_edges: int | None = option(
        None,
        flag="--edges",
        help="The edges of the circuit.",
        ge=1,
        le=MAX_EDGES,
        description="If omitted, as few as reach `faithfulness`.",
    )
    faithfulness: float | None = option(
        None,
        help="Without --edges, as few edges as reach this.",
        metavar="SHARE",
        shown="0.9",
        gt=0,
        le=1,
        description="The share to reach on the pairs that choose. If omitted, 0.9.",
    )
    holds_out: bool = option(
        True,
        help="Let every pair choose the edges.",
        description="Every second pair is only measured; otherwise all pairs choose, too.",
    )
    by_position: bool = option(
        False,
        help="Tell positions apart: an edge is named 3.3→logits@5.",
        description="Edges at each position by themselves, `3.3→logits@5`. The pairs need one "
        "length: those of the commonest are taken.",
    )
    by_expert: bool = option(
        False,
        help="Tell the experts of a layer apart, as 2.e5.",
        description="Each expert is a writer, `2.e5`, and not all of a layer together.",
    )


class CircuitRequest(CircuitSettings):
    """The pairs of a task, and how to choose the edges of the circuit."""

    pairs: list[PairRequest] = option(
        flag=None, default=[], max_length=MAX_PAIRS, description="In place of them, `task`."
    )
    edges: Annotated[list[Text], Field(max_length=MAX_EDGES)] | None = option(
        None,
        flag=None,
        description="In place of a choice, these edges, such as `3.3→logits`: only their own run "
        "is measured.",
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if bool(self.pairs) == (self.task is not None):
            raise PydanticCustomError("pairs", "send either pairs or the name of a task")
        return self


class NodeAnswer(Answer):
    """A writer or a reader of the graph."""

    name: str
    kind: Literal[
        "tokens", "head", "attention", "feed_forward", "expert", "query", "key", "value", "logits"
    ]
    stack: Literal["encoder", "decoder"]
    layer: int | None
    heads: list[int] = Field(description="Those that it is of; none: it is of no head.")
    path: str = Field(description="Of its attention, network or experts.")


class EdgeAnswer(Answer):
    """An edge of the circuit."""

    name: str
    writer: int = Field(description="Its place in `writers`.")
    reader: int = Field(description="Its place in `readers`.")
    position: int | None = Field(description="Null: every position.")
    score: float | None = Field(
        description="The estimated change of the logit difference as the edge is corrupted, in "
        "logits: negative works for the right token. Null: no edge was scored."
    )
    loss: float = Field(description="The faithfulness that the circuit loses without it.")


class FaithfulnessAnswer(Answer):
    """How much of the logit difference D a run keeps: (D − corrupted)/(clean − corrupted)."""

    value: float
    interval: tuple[float, float] = Field(description="95 %, over pairs drawn with replacement.")
    clean: float = Field(description="The mean D of the clean texts, in logits.")
    corrupted: float
    circuit: float
    clean_right: float = Field(description="The share of pairs in which D is above 0.")
    corrupted_right: float
    circuit_right: float
    n_pairs: int


class CurvePointAnswer(Answer):
    """The faithfulness of the first edges."""

    n_edges: int
    n_on_paths: int = Field(description="Those that lie on a path from a token to the logits.")
    faithfulness: float
    right: float


class CircuitAnswer(Answer):
    """A circuit, and what its own run shows."""

    model: str
    revision: str
    request: CircuitSettings = Field(description="What was asked.")
    n_edges: int = Field(description="Of the whole graph, by position if it is unfolded.")
    tokens: list[str] = Field(description="Those of the first pair's clean text.")
    target_tokens: list[str] | None = Field(description="Those of its target.")
    writers: list[NodeAnswer]
    readers: list[NodeAnswer]
    reasons: list[str] = Field(description="Why the graph has fewer nodes than heads and inputs.")
    edges: list[EdgeAnswer] = Field(description="Of the circuit, on paths; the strongest first.")
    ranking: list[EdgeAnswer] = Field(
        description="The strongest edges of the graph in the order of the curve, without losses."
    )
    chosen: FaithfulnessAnswer = Field(description="On the pairs that the edges were chosen on.")
    held_out: FaithfulnessAnswer | None = Field(description="On the others.")
    curve: list[CurvePointAnswer]
    complement: float = Field(description="The faithfulness of all edges but the circuit's.")
    pairs: list[PairRequest] = Field(description="Those of the task, first to last.")
    skipped: list[str] = Field(description="Pairs that do not fit the tokenizer, and why.")


class TaskAnswer(Answer):
    """A task that ships."""

    name: str
    rule: str
    lacks: str | None = Field(
        None, description="Why the model of the request cannot do it; null: it can, or none."
    )


class TasksAnswer(Answer):
    """The tasks that ship."""

    tasks: list[TaskAnswer]
