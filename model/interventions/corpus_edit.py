"""Set a site to a mean or a draw of a corpus: mean and resampling ablation.

CorpusEdit(site="decoder.layers.3.self_attention.context", heads=(3,), draws="mean")
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch

from headlight.model.interventions.intervention import ImpossibleIntervention, Intervention
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.served import Served
from headlight.model.sites import Site
from headlight.model.tracing import PassSpec, run_batch, tokenize

CORPUS_SENTENCES = 64
"""The sentences of the head profile that a mean is over; a card says how they were chosen."""


@dataclass(frozen=True, kw_only=True)
class CorpusEdit(Intervention):
    """Set a site to its mean over a corpus, or to its value at a token drawn from it.

    The corpus is the sentences of the model's head profile or, if it has none, the examples of its
    card, or ``texts``. ``seed`` decides the
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
                f"the model '{model.id}' has neither a head profile nor examples to take sentences "
                "from; send texts, or measure its heads with `headlight profile`"
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
    """Return the first sentences that the head profile of a model holds, with their targets.

    Of a model without a profile they are the examples of its card, which have no targets.
    """
    if model.description.heads is None and model.config.kind != "encoder-decoder":
        examples = model.description.card.examples.values()
        return tuple((each if isinstance(each, str) else each.text, None) for each in examples)
    profile = model.description.heads or {}
    listed = profile.get("examples", ())
    return tuple((each["text"], each.get("target")) for each in listed[:CORPUS_SENTENCES])
