"""Cut edges: a reader does not read what a writer wrote.

    Cut(edges=("3.3→logits",))

Path patching: Goldowsky-Dill et al. 2023, https://arxiv.org/abs/2304.05969.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from headlight.model.circuits.edges import placed
from headlight.model.circuits.parts import GraphParts, parts_of
from headlight.model.circuits.path_patching import MixedPasses, Mixing
from headlight.model.interventions.intervention import (
    ImpossibleIntervention,
    Intervention,
    Places,
    SiteEdits,
)
from headlight.model.interventions.site_edit import require_positions
from headlight.model.served import Served
from headlight.model.sites import Site
from headlight.model.tracing import tokenize

_OF_EXPERT = re.compile(r"(^|\.)e\d+\s*(→|->)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut(Intervention):
    """Cut edges: their readers read zero, or what the writers wrote in another text.

    ``edges`` are names as in `Graph.names`, such as ``3.3→logits``, or with a position as in
    `Edges.name`, ``3.3→logits@5``; ``positions`` those of readers without one, None: all.
    ``text`` is another text of as many tokens; None: zero. Positions beyond it stay as they are.
    """

    shares_pass = is_bounded = False
    edges: tuple[str, ...]
    text: str | None = None
    target: str | None = None
    positions: tuple[int, ...] | None = None
    start: int = 0
    parts: GraphParts | None = field(default=None, repr=False)
    other: Mapping[int, Tensor] | None = field(default=None, repr=False)

    def bind(self, sites: Iterable[Site], start: int | None = None) -> Cut:
        """As `Intervention.bind`: set the start of a pass."""
        return self if start is None else replace(self, start=start)

    def with_model(self, model: Served) -> Cut:
        """As `Intervention.with_model`: find the edges, and read the other text.

        Raises:
            NoGraph: the model has no exact graph.
            UnknownEdge: it has no such edge.
            EmptyText, TooManyTokens, UnknownToken, ValueError: as `tracing.tokenize`.
        """
        parts = parts_of(model, by_expert=any(_OF_EXPERT.search(name) for name in self.edges))
        for name in self.edges:
            placed(parts.graph, name)
        if self.positions is not None:
            require_positions(self.positions, None, "an edge")
        is_double = model.config.kind == "encoder-decoder"
        if self.text is None:
            zero = torch.zeros(1, 1, model.config.d_model, device=model.device)
            return replace(
                self, parts=parts, other=dict.fromkeys(range(len(parts.graph.writers)), zero)
            )
        if is_double and self.target is None:
            raise ImpossibleIntervention("another text of an encoder–decoder needs its target")
        read = tokenize(model, self.text, self.target)
        ids, targets = (
            [token.id for token in each or ()] for each in (read.tokens, read.target_tokens)
        )
        writes, _ = MixedPasses(model, parts).writes([ids], [targets] if targets else None)
        return replace(self, parts=parts, other=writes)

    @classmethod
    def combined(cls, interventions: Sequence[Cut], places: Places) -> SiteEdits:
        """Yield the edits of all that have a model; two of them cannot cut the same reader."""
        ready = [each for each in interventions if each.parts is not None]
        if len(ready) > 1:
            raise ImpossibleIntervention("a pass has one cut; name all edges in it")
        for each in ready:
            assert each.parts is not None
            assert each.other is not None
            graph = each.parts.graph
            edges = [placed(graph, name) for name in each.edges]
            given = [*(each.positions or ()), *(at for _, at in edges if at is not None)]
            width = max(given) + 1 if given else 1
            # Beyond the mask nothing is cut: an edge at every position needs a mask without places.
            if given and each.positions is None and any(at is None for _, at in edges):
                raise ImpossibleIntervention(
                    "either all edges of a cut have a position, as in 3.3→logits@5, or none has"
                )
            cut = torch.zeros(1, len(graph.writers), len(graph.readers), width, dtype=torch.bool)
            for number, position in edges:
                writer, reader = graph.edges[number]
                at = list(each.positions or [0]) if position is None else [position]
                cut[0, writer, reader, at] = True
            mixing = Mixing(each.parts, cut, each.other, each.start, is_placed=bool(given))
            yield from mixing.edits()
