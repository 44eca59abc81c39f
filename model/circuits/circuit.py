"""Circuits: the few edges of a model that do a task, and how faithful their own run is.

    faithfulness = (D(circuit) − D(corrupted)) / (D(clean) − D(corrupted))

The circuit's run reads the clean text, and every edge outside the circuit carries what it carries
for the corrupted text. Scores only choose the edges: edges that back each other up look idle one
at a time, so the run is the answer. Wang et al. 2022, https://arxiv.org/abs/2211.00593, section 4;
Hanna et al. 2024, https://arxiv.org/abs/2403.17806.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from headlight.model.circuits.edge_scores import STEPS, Method, edge_scores
from headlight.model.circuits.edges import Edges, Place
from headlight.model.circuits.pairs import PairPasses

Rule: TypeAlias = Literal["top", "greedy", "pruned"]
Progress: TypeAlias = Callable[[float], object]

COUNTS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 80, 120, 240, 480)
"""The numbers of edges at which the curve is measured; all edges are its last point."""
N_RESAMPLED = 1000
BEGIN_WITH = 3
"""Times as many edges as are asked for: what ``pruned`` leaves edges out of."""
LEAST_DIFFERENCE = 1e-3
_SCORED, _CHOSEN = 0.2, 0.6
"""The shares of the work that are done when edges are scored, and chosen."""


@dataclass(frozen=True)
class Faithfulness:
    """The share of the logit difference that a circuit keeps, of some pairs.

    ``interval`` has 95 % of the shares of pairs drawn with replacement, a thousand times;
    ``clean``, ``corrupted`` and ``circuit`` are the mean D, the others the shares of pairs with
    D > 0.
    """

    value: float
    interval: tuple[float, float]
    clean: float
    corrupted: float
    circuit: float
    clean_right: float
    corrupted_right: float
    circuit_right: float
    n_pairs: int


@dataclass(frozen=True)
class CurvePoint:
    """The faithfulness of the strongest edges, and how many of them lie on a path."""

    n_edges: int
    n_on_paths: int
    faithfulness: float
    right: float


@dataclass(frozen=True)
class Circuit:
    """The edges of a circuit, and what its own run shows.

    Attributes:
        scores: of every edge of the graph; None: the edges were given.
        edges: the numbers of those of the circuit, the strongest first.
        chosen: how faithful it is on the pairs that its edges were chosen on.
        held_out: on other pairs; None: there are none.
        curve: on the pairs held out, or on all.
        losses: of each edge of the circuit: the faithfulness that is lost without it.
        complement: the faithfulness of all other edges.
    """

    scores: Float[np.ndarray, " edge"] | None
    edges: tuple[int, ...]
    chosen: Faithfulness
    held_out: Faithfulness | None
    curve: tuple[CurvePoint, ...]
    losses: Float[np.ndarray, " edge"]
    complement: float


def find_circuit(
    passes: PairPasses,
    *,
    method: Method = "eap_ig",
    steps: int = STEPS,
    rule: Rule = "pruned",
    n_edges: int | None = None,
    faithfulness: float | None = None,
    holds_out: bool = True,
    on_progress: Progress = lambda _: None,
) -> Circuit:
    """Find a circuit of a number of edges, or the smallest of a faithfulness.

    Args:
        passes: over the pairs; every second one is held out.
        method: of the scores.
        steps: of EAP-IG.
        rule: ``top``: the edges of the largest scores by size. ``greedy``: from the logits back,
            each time the strongest edge into a reader that is already in.
        n_edges: how many; None: see `faithfulness`.
        faithfulness: to reach on the pairs that edges are chosen on, by the fewest edges.
        holds_out: False: the same pairs choose and measure.
        on_progress: called with the share of the work that is done.

    Raises:
        ValueError: the texts of the pairs give the same logit difference.
        Cancelled: as `cancellation`.
    """
    is_split = holds_out and len(passes.pairs) > 1
    choosing = replace(passes, pairs=passes.pairs[::2]) if is_split else passes
    measuring = replace(passes, pairs=passes.pairs[1::2]) if is_split else passes
    shares = _Shares(choosing, on_progress)
    scores = edge_scores(choosing, method, steps)
    on_progress(_SCORED)
    order = ranked(passes.edges, scores, rule)
    least = 0.9 if faithfulness is None else faithfulness
    if n_edges is None:
        wanted = order[: shares.fewest(order, least)]
        if rule == "pruned":
            wanted = shares.pruned(wanted, 1, least)
    else:
        wanted = order[:n_edges]
        if rule == "pruned":
            wanted = shares.pruned(order[: BEGIN_WITH * n_edges], n_edges)
    on_progress(_CHOSEN)
    on_paths = set(passes.edges.on_paths(wanted))
    edges = tuple(edge for edge in wanted if edge in on_paths)
    measured = _Shares(measuring) if is_split else shares
    alone, complement, losses = measured.by_edge(edges)
    return Circuit(
        scores=scores,
        edges=edges,
        chosen=shares.measured(shares.runs([edges])[0]),
        held_out=measured.measured(alone) if is_split else None,
        curve=measured.curve(order),
        losses=losses,
        complement=complement,
    )


def measure(passes: PairPasses, edges: Sequence[int]) -> Circuit:
    """Return what the run of given edges shows on all pairs.

    Raises:
        ValueError: the texts of the pairs give the same logit difference.
        Cancelled: as `cancellation`.
    """
    shares = _Shares(passes)
    edges = tuple(dict.fromkeys(edges))
    run, complement, losses = shares.by_edge(edges)
    return Circuit(
        scores=None,
        edges=edges,
        chosen=shares.measured(run),
        held_out=None,
        curve=(),
        losses=losses,
        complement=complement,
    )


def ranked(edges: Edges, scores: Float[np.ndarray, " edge"], rule: Rule) -> list[int]:
    """Return the numbers of the edges, the first to be in a circuit first."""
    sizes = np.abs(scores)
    if rule != "greedy":
        return [int(edge) for edge in np.argsort(-sizes, kind="stable")]
    into: dict[Place, list[int]] = {}
    for number in range(edges.n_edges):
        into.setdefault(edges.ends(number)[1], []).append(number)
    order: list[int] = []
    queue: list[tuple[float, int]] = []
    joined: set[Place] = set()

    def join(reader: Place) -> None:
        if reader not in joined:
            joined.add(reader)
            for number in into.get(reader, ()):
                heapq.heappush(queue, (-float(sizes[number]), number))

    for reader in edges.last:
        join(reader)
    while queue:
        _, number = heapq.heappop(queue)
        order.append(number)
        for at in edges.fed_by(edges.ends(number)[0]):
            join(at)
    return order


class _Shares:
    """The logit differences of some pairs, and shares of what lies between them."""

    def __init__(self, passes: PairPasses, on_progress: Progress = lambda _: None) -> None:
        self.passes, self.on_progress = passes, on_progress
        self.clean, self.corrupted = passes.whole()
        if passes.baseline != "corrupted":
            self.corrupted = passes.with_only([()])[0]
        between = abs(float(self.clean.mean() - self.corrupted.mean()))
        if between < LEAST_DIFFERENCE:
            raise ValueError(
                f"the clean and the corrupted texts give the same logit difference, "
                f"{self.clean.mean():.3f}, so there is nothing that a circuit could keep; change "
                "the corrupted texts"
            )

    def runs(self, kept: Sequence[Collection[int]]) -> Float[np.ndarray, "variant pair"]:
        return self.passes.with_only(kept)

    def share(self, run: Float[np.ndarray, " pair"]) -> float:
        base = self.corrupted.mean()
        return float((run.mean() - base) / (self.clean.mean() - base))

    def by_edge(
        self, edges: Sequence[int]
    ) -> tuple[Float[np.ndarray, " pair"], float, Float[np.ndarray, " edge"]]:
        """Return the run of some edges, the share of all others, and what each edge loses."""
        others = sorted(set(range(self.passes.edges.n_edges)) - set(edges))
        without = [[each for each in edges if each != left] for left in edges]
        runs = self.runs([edges, others, *without])
        base, complement, *values = (self.share(run) for run in runs)
        return runs[0], complement, base - np.array(values)

    def measured(self, run: Float[np.ndarray, " pair"]) -> Faithfulness:
        n = len(run)
        draws = np.random.default_rng(0).integers(0, n, (N_RESAMPLED, n))
        clean, corrupted, kept = (
            each[draws].mean(axis=1) for each in (self.clean, self.corrupted, run)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = (kept - corrupted) / (clean - corrupted)
        low, high = np.nanpercentile(shares, [2.5, 97.5])
        return Faithfulness(
            value=self.share(run),
            interval=(float(low), float(high)),
            clean=float(self.clean.mean()),
            corrupted=float(self.corrupted.mean()),
            circuit=float(run.mean()),
            clean_right=float((self.clean > 0).mean()),
            corrupted_right=float((self.corrupted > 0).mean()),
            circuit_right=float((run > 0).mean()),
            n_pairs=n,
        )

    def curve(self, order: Sequence[int]) -> tuple[CurvePoint, ...]:
        counts = [*(count for count in COUNTS if count < len(order)), len(order)]
        runs = self.runs([order[:count] for count in counts])
        edges = self.passes.edges
        return tuple(
            CurvePoint(
                n_edges=count,
                n_on_paths=len(edges.on_paths(order[:count])),
                faithfulness=self.share(run),
                right=float((run > 0).mean()),
            )
            for count, run in zip(counts, runs, strict=True)
        )

    def pruned(self, edges: Sequence[int], n_edges: int, least: float | None = None) -> list[int]:
        """Return fewer edges: those that the run of the circuit loses most without.

        A quarter of those that are left is taken away at a time; then the rest is measured again.

        Args:
            edges: the edges to begin with.
            n_edges: how many to leave.
            least: the faithfulness at which to stop before; None: at none.
        """
        left = self._on_paths(edges)
        sign = np.sign(self.clean.mean() - self.corrupted.mean())
        part, first = 4, len(left)
        while len(left) > n_edges:
            done = math.log(first / len(left)) / math.log(first / n_edges)
            self.on_progress(_SCORED + done * (_CHOSEN - _SCORED))
            runs = self.runs([[edge for edge in left if edge != out] for out in left])
            order = np.argsort(runs.mean(axis=1) * sign, kind="stable")
            n_kept = max(n_edges, len(left) - max(1, len(left) // part))
            kept = set(order[:n_kept].tolist())
            fewer = self._on_paths([edge for place, edge in enumerate(left) if place in kept])
            if least is not None and self.share(self.runs([fewer])[0]) < least:
                if part >= len(left):
                    break
                part *= 4  # fewer at a time
                continue
            left = fewer
        return left

    def _on_paths(self, edges: Sequence[int]) -> list[int]:
        on_paths = set(self.passes.edges.on_paths(edges))
        return [edge for edge in edges if edge in on_paths]

    def fewest(self, order: Sequence[int], least: float) -> int:
        """Return the smallest number of edges from which on the curve stays at or above `least`.

        Between two measured numbers it is looked for by halving.
        """
        counts = [count for count in (*COUNTS, len(order)) if count <= len(order)]
        shares = [self.share(run) for run in self.runs([order[:count] for count in counts])]
        at = next((n for n, share in enumerate(shares) if share >= least), len(counts) - 1)
        low, high = counts[max(0, at - 1)], counts[at]
        while high - low > 1:
            middle = (low + high) // 2
            if self.share(self.runs([order[:middle]])[0]) >= least:
                high = middle
            else:
                low = middle
        return high
