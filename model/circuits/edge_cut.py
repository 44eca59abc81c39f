"""Interventions on causes: cut edges, hide keys from queries, and set a mean or a draw of a corpus.

    Cut(edges=("3.3→logits",))                 a reader does not read what a writer wrote
    KnockOut(layer=3, heads=(3,), queries=(5,), keys=(2,))     a query may not see a key
    CorpusEdit(site="decoder.layers.3.self_attention.context", heads=(3,), draws="mean")

Path patching: Goldowsky-Dill et al. 2023, https://arxiv.org/abs/2304.05969. Attention knock-out:
Geva et al. 2023, https://arxiv.org/abs/2304.14767.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from headlight.model.circuits.edge_mixing import MixedPasses, Mixing
from headlight.model.circuits.parts import GraphParts, parts_of
from headlight.model.circuits.unfolded import placed
from headlight.model.interventions.protocol import (
    ImpossibleIntervention,
    Intervention,
    PlacedIntervention,
    Places,
    SiteEdits,
)
from headlight.model.interventions.site_edit import SiteEdit, require_positions
from headlight.model.served.protocol import Served
from headlight.model.sites import Site, require_heads
from headlight.model.tracing import PassSpec, run_batch, tokenize

_OF_EXPERT = re.compile(r"(^|\.)e\d+\s*(→|->)")

CORPUS_SENTENCES = 64
"""The sentences of the head profile that a mean is over; a card says how they were chosen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut(Intervention):
    """Cut edges: their readers read zero, or what the writers wrote in another text.

    ``edges`` are names as in `Graph.names`, such as ``3.3→logits``, or with a position as in
    `Unfolded.name`, ``3.3→logits@5``; ``positions`` those of readers without one, None: all.
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

    def edits(self, places: Places) -> SiteEdits:
        """As `Intervention.edits`: none before the model is known."""
        yield from ()

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


@dataclass(frozen=True, kw_only=True)
class KnockOut(PlacedIntervention):
    """Hide keys from queries: their weights are 0.

    ``heads`` None: all. ``renormalised``: the rest of a row sums to 1, as after a mask; otherwise
    it keeps its weights.
    """

    stage = 4
    shares_pass = False
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    heads: tuple[int, ...] | None = None
    renormalised: bool = True
    start: int = 0

    def bind(self, sites: Iterable[Site], start: int | None = None) -> KnockOut:
        """As `Intervention.bind`: set the start of a pass."""
        return self if start is None else replace(self, start=start)

    def edits(self, places: Places) -> SiteEdits:
        """As `Intervention.edits`."""
        if self.heads is not None:
            require_heads(self.heads, places.config.n_heads)
        for positions, what in ((self.queries, "a row"), (self.keys, "a row of keys")):
            require_positions(positions, None, what)
        for path in places.attentions(self):
            site = f"{path}.scores" if self.renormalised else f"{path}.weights"
            yield site, partial(self._hidden, path=path)

    def require_fitting(self, sizes_at: Callable[[str], Mapping[str, int]]) -> None:
        """As `Intervention.require_fitting`: the positions of the decoder or of the only stack."""

    def _hidden(self, tensor: Tensor, path: str) -> Tensor:
        n_queries, n_keys = tensor.shape[-2:]
        rows = [at - self.start for at in self.queries if 0 <= at - self.start < n_queries]
        columns = [at for at in self.keys if at < n_keys]
        if not rows or not columns:
            return tensor
        heads = list(self.heads) if self.heads is not None else list(range(tensor.shape[1]))
        hidden = tensor.clone()
        index = (
            torch.tensor(heads)[:, None, None],
            torch.tensor(rows)[:, None],
            torch.tensor(columns),
        )
        hidden[:, index[0], index[1], index[2]] = -math.inf if self.renormalised else 0.0
        if self.renormalised and bool(hidden[:, :, rows].isneginf().all(-1).any()):
            raise ImpossibleIntervention(
                f"a row of {path} would see no key at all; leave it one, or do not renormalise"
            )
        return hidden


@dataclass(frozen=True, kw_only=True)
class CorpusEdit(Intervention):
    """Set a site to its mean over a corpus, or to its value at a token drawn from it.

    The corpus is the sentences of the model's head profile, or ``texts``. ``seed`` decides the
    draw; all edited positions have the same value. ``targets`` belong to ``texts``, for a site in
    the decoder of an encoder–decoder.
    """

    stage = Intervention.SITES
    shares_pass = False
    site: str
    draws: Literal["mean", "token"] = "mean"
    heads: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None
    texts: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    seed: int = 0

    def bind(self, sites: Iterable[Site], start: int | None = None) -> CorpusEdit:
        """As `Intervention.bind`: check the site."""
        SiteEdit(
            kind="set", site=self.site, value=0.0, heads=self.heads, positions=self.positions
        ).bind(sites, start)
        return self

    def with_model(self, model: Served) -> Intervention:
        """As `Intervention.with_model`: read the corpus, and return the edit with its values.

        Raises:
            ImpossibleIntervention: there is no corpus, or the values of the site depend on the
                length of a text.
            EmptyText, TooManyTokens, UnknownToken, ValueError: as `tracing.tokenize`.
        """
        pairs = self._pairs(model)
        if not pairs:
            raise ImpossibleIntervention(
                f"the model '{model.id}' has no head profile to take sentences from; send texts"
            )
        site = {each.name: each for each in model.description.sites}[self.site]
        axes = tuple(axis for axis in site.axes if axis != "batch")
        if {"query", "key"} <= set(axes):
            raise ImpossibleIntervention(
                f"{self.site} has a number for each pair of tokens, and texts of other lengths "
                "have other numbers of them; take another site"
            )
        place = next(n for n, axis in enumerate(axes) if axis in ("query", "key", "position"))
        spec = PassSpec((self.site,))
        inputs = [tokenize(model, text, target) for text, target in pairs]
        arrays = [trace.tensors[self.site].data for trace in run_batch(model, spec, inputs)]
        rows = torch.cat([torch.from_numpy(array).movedim(place, 0) for array in arrays])
        drawn = random.Random(self.seed).randrange(len(rows))
        value = rows.double().mean(dim=0) if self.draws == "mean" else rows[drawn]
        value = value.float().unsqueeze(place)
        if self.heads is not None:
            value = value.index_select(axes.index("head"), torch.tensor(self.heads))
        edit = SiteEdit(
            kind="set",
            site=self.site,
            value=value.numpy(),
            heads=self.heads,
            positions=self.positions,
        )
        return edit.bind(model.description.sites)

    def _pairs(self, model: Served) -> tuple[tuple[str, str | None], ...]:
        pairs = profile_texts(model)
        if model.config.kind != "encoder-decoder":
            return tuple((text, None) for text in self.texts or [text for text, _ in pairs])
        if not self.texts:
            return pairs
        targets = self.targets
        if not targets and self.site.startswith("encoder."):
            targets = self.texts  # an encoder does not see them
        if len(targets) != len(self.texts):
            raise ImpossibleIntervention(
                f"{self.site} is in a decoder: send as many targets as texts, {len(self.texts)}, "
                f"not {len(targets)}"
            )
        return tuple(zip(self.texts, targets, strict=True))


def profile_texts(model: Served) -> tuple[tuple[str, str | None], ...]:
    """Return the first sentences that the head profile of a model holds, with their targets."""
    profile = model.description.heads or {}
    examples = profile.get("examples", ())
    return tuple((each["text"], each.get("target")) for each in examples[:CORPUS_SENTENCES])
