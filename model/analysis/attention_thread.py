"""The thread of a prediction: heads that spoke for it, and why each looked where it did.

From a word backwards: the head that adds most to the logit difference, the token that it reads for
this, the part of the stream that most made it look there (`score_attribution`), the token that this
head read in its turn, and so on, to a token, a position or a network. Each step has its share of
the sum that it is a part of, and what a cut of its edge changes (`circuits.cut`): a share of a sum
is no cause, as another part may stand in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headlight.model.analysis.layers import ATTENTIONS, layers_of
from headlight.model.analysis.logit_attribution import LogitDifference
from headlight.model.analysis.score_attribution import (
    Cell,
    ScoreParts,
    read_by,
    read_for,
    score_parts,
)
from headlight.model.analysis.stream_parts import Part
from headlight.model.circuits.cut import Cut
from headlight.model.circuits.graph import Graph
from headlight.model.circuits.parts import parts_of
from headlight.model.interventions.intervention import Intervention
from headlight.model.served import Served
from headlight.model.trace import NamedArray, Trace
from headlight.model.tracing import ModelInput, PassSpec, run_batch

MOST_STEPS = 4
CLOSE = 0.6
"""The share of the strongest part from which another is told as well."""
MOST_OTHERS = 2


@dataclass(frozen=True, kw_only=True)
class Step:
    """A head of the thread: the cell that it looks at, and its share of what it is a part of.

    ``side`` is ``logits``, or the side of the cell before that read what the head wrote, and
    ``share`` its part of that sum, 1 if it is all of it. ``others`` are the parts that are nearly
    as large, with their shares. ``edge`` is what a cut takes away, and ``before`` and ``after`` the
    logit difference, or the weight of the cell before, in the pass and with the cut; None: nothing
    can be cut. ``opposite`` is the strongest part of the other side. ``adds`` are the logits of the
    token and of its rival over the mean of the vocabulary, of the first step only: a head may read
    one word and write against the other.
    """

    name: str
    cell: Cell | None
    weight: float | None
    side: str
    share: float
    others: tuple[tuple[str, float], ...] = ()
    edge: str | None = None
    before: float | None = None
    after: float | None = None
    adds: tuple[float, float] | None = None
    kind: str = "head"
    opposite: tuple[str, float] | None = None


@dataclass
class Thread:
    """Follows the parts of a prediction of a trace backwards.

    Args:
        model: the model.
        trace: with logits and contexts.
        difference: of the prediction.
        interventions: of the pass.
    """

    model: Served
    trace: Trace
    difference: LogitDifference
    interventions: tuple[Intervention, ...] = ()

    def __post_init__(self) -> None:
        self.graph: Graph | None = None
        if not any(isinstance(each, Cut) for each in self.interventions):  # a pass has one cut
            try:
                self.graph = parts_of(self.model).graph
            except ValueError:
                self.graph = None

    def steps(
        self, arrays: Mapping[str, NamedArray], lifts: Mapping[str, NamedArray]
    ) -> list[Step]:
        """Return the steps, the first from the prediction; the last may be a part that is no head.

        Args:
            arrays: the logit attribution of the difference.
            lifts: that of the token's logit over the mean of the vocabulary.

        Raises:
            ValueError: no head of the model has a part in the difference.
        """
        step = self._first(arrays, lifts)
        steps = [step]
        while step.cell is not None and len(steps) < MOST_STEPS:
            step = self._before(step.cell)
            steps.append(step)
        return steps

    # --- the first step ---------------------------------------------------------------------------

    def _first(self, arrays: Mapping[str, NamedArray], lifts: Mapping[str, NamedArray]) -> Step:
        *_, stack = layers_of(self.trace, "residual.after")
        total = float(arrays["logits"].data[0] - arrays["logits"].data[1])
        values: dict[tuple[str, int, int], float] = {
            (kind, layer, head): float(value)
            for kind in ATTENTIONS
            if f"{kind}.keys" in arrays
            for layer, heads in enumerate(arrays[f"{kind}.heads"].data)
            for head, value in enumerate(heads)
        }
        if not values:
            raise ValueError("this model does not say what its heads read for a prediction")
        sign = 1 if total >= 0 else -1
        ranked = sorted(values, key=lambda place: -sign * values[place])
        (kind, layer, head), position = ranked[0], self.difference.position
        number = self.trace.heads or range(self.model.config.n_heads)
        path = f"{stack}.layers.{layer}.{kind}"
        by_key = sign * arrays[f"{kind}.keys"].data[layer, head]
        cell = Cell(path=path, head=number[head], query=position, key=int(by_key.argmax()))
        lift = float(lifts[f"{kind}.heads"].data[layer, head])
        shares = [
            (_name(of, at, number[each]), values[of, at, each] / (total or 1.0))
            for of, at, each in ranked
        ]
        (name, share), *others = shares
        edge = self._edge(name, "logits")
        after = None
        if edge is not None:
            after = self.difference.in_trace(self._read(["logits"], edge))
        return Step(
            name=name,
            cell=cell,
            weight=self._weight(cell),
            side="logits",
            share=share,
            others=_close(share, others),
            edge=edge,
            before=total,
            after=after,
            adds=(lift, lift - values[ranked[0]]),
        )

    # --- the steps before it ----------------------------------------------------------------------

    def _before(self, cell: Cell) -> Step:
        """Return the part that most made a cell's query look at its key, and where it looked."""
        read = read_for(self.model, self.trace, cell.path, cell.query, self.interventions)
        try:
            made = score_parts(self.model, read, cell, is_edited=bool(self.interventions))
        except ValueError as error:
            return Step(name=str(error), cell=None, weight=None, side="", share=1, kind="end")
        scale = abs(made.score) or 1.0
        ranked = sorted(
            (
                (float(share) / scale, side, part)
                for side, parts, shares in (
                    ("query", made.query_parts, made.query_side),
                    ("key", made.key_parts, made.key_side),
                )
                for part, share in zip(parts, shares, strict=True)
            ),
            key=lambda each: -each[0],
        )
        share, side, part = ranked[0]
        others = [(each.name, its) for its, of, each in ranked[1:] if of == side]
        edge = self._edge(part.name, side, cell)
        step = Step(
            name=part.name,
            cell=None,
            weight=None,
            side=side,
            share=share,
            others=_close(share, others),
            edge=edge,
            before=made.weights[0],
            after=None if edge is None else self._weight(cell, edge),
            kind=part.kind,
            opposite=next((each.name, its) for its, of, each in ranked if of != side),
        )
        return self._reading(step, part, read, cell, made)

    def _reading(self, step: Step, part: Part, read: Trace, cell: Cell, made: ScoreParts) -> Step:
        """Return a step of a head with the token that it read where its write was read."""
        if part.kind != "head":
            return step
        assert part.head is not None
        try:
            split = read_by(self.model, read, cell, made, part.name, self.interventions)
        except ValueError:  # its values cannot be read
            return step
        query = cell.query if step.side == "query" else cell.key
        key = int(split[step.side].argmax())
        earlier = Cell(path=part.path, head=part.head, query=query, key=key)
        return replace(step, cell=earlier, weight=self._weight(earlier))

    # --- passes -----------------------------------------------------------------------------------

    def _edge(self, name: str, kind: str, cell: Cell | None = None) -> str | None:
        """Return the edge from a part to the query or key of a cell, or the logits; None: none."""
        return None if self.graph is None else edge_of(self.graph, name, kind, cell)

    def _weight(self, cell: Cell, edge: str | None = None) -> float:
        """Return the weight of a cell, in the pass or with an edge cut."""
        rows = self._read([f"{cell.path}.rows"], edge, (cell.query,))[f"{cell.path}.rows"]
        return float(rows[cell.head, 0, cell.key])

    def _read(
        self, sites: Sequence[str], edge: str | None, queries: tuple[int, ...] | None = None
    ) -> Trace:
        """Read the text again, with an edge cut if one is given."""
        cut = () if edge is None else (Cut(edges=(edge,)).with_model(self.model),)
        spec = PassSpec(tuple(sites), None, (*self.interventions, *cut), queries=queries)
        read = self.trace
        text = ModelInput(read.text, read.tokens, read.target, read.target_tokens)
        return run_batch(self.model, spec, [text])[0]


def edge_of(graph: Graph, name: str, kind: str, cell: Cell | None = None) -> str | None:
    """Return the edge from a part to the query or key of a cell, or the logits; None: none."""
    writer = re.sub(r"token$", "tokens", name)
    readers = (
        each.name
        for each in graph.readers
        if each.kind == kind
        and (cell is None or (each.path == cell.path and cell.head in each.heads))
    )
    is_writer = any(each.name == writer for each in graph.writers)
    reader = next(readers, None) if is_writer else None
    return None if reader is None else f"{writer}→{reader}"


def _name(kind: str, layer: int, head: int) -> str:
    return f"{'cross.' if kind == 'cross_attention' else ''}{layer}.{head}"


def _close(share: float, others: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return the others that are nearly as large as the strongest."""
    return tuple(each for each in others if each[1] >= CLOSE * share)[:MOST_OTHERS]
