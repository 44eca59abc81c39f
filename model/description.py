"""The metadata of a model: its architecture, its sites, and what it can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from headlight.model.attention.observer import MAPS, OBSERVED_AXES, ROWS
from headlight.model.checkpoint.card import ModelCard
from headlight.model.config import Architecture, Predicts
from headlight.model.quantization.affine import Quantization
from headlight.model.sites import Site
from headlight.model.tokenizer import UNCHANGED, Normalization
from headlight.model.trace import AttentionFacts, Rotation

MODES = ("mean", "cls", "max", "last")

NO_LIMIT = 1_000_000
"""The ``max_tokens`` of a foreign model whose positions have no end."""


@dataclass(frozen=True)
class Pooling:
    """The way from the last hidden states to the vector of a text, one of `MODES`.

    ``cls`` takes the first token. A text may have ``max_tokens``; None: as many as the model reads.
    """

    mode: str = "mean"
    is_normalized: bool = False
    max_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Description:
    """The metadata of a model.

    ``sites`` have the sizes of their axes, ``attentions`` the terms of each softmax. ``rotation``
    is that of the queries by their positions; None: they are not rotated, or not in pairs.
    ``omitted`` maps the name of a site or feature that the model cannot offer to the reason.
    ``checks`` are the differences that the self-check of a foreign model measured. ``features`` are
    what it can do beyond being traced: ``generate``, ``translate``, ``fill``, ``logit_lens``,
    ``head_outputs``, ``chat``. ``normalization`` are the tokenizer's changes to a text.
    ``matrices`` are the names of the weights that can be quantized;
    ``quantization`` is that of the weights as they are stored, None if they are not quantized.
    ``heads`` is the profile of the heads, if one was measured (`head_profiles`), and ``curves`` are
    those of the training run, if they were kept (`run_curves`). ``steps`` are the states of the
    training that are there (`steps`), each a model too. ``trained_tokens`` is the length of
    the texts that it was trained on, and ``longest_text`` the tokens that it can read if only parts
    of its attention are asked for; 0: both are ``config.max_tokens``. ``is_streamed``: attention
    that is observed runs in blocks; otherwise the weights of one layer are in memory at a time.
    ``predicts``: tokens; one label of the text, or several; a label of each token; a score; where
    an answer starts and ends; or nothing but vectors. ``labels`` are named in order of their ids.
    ``pooling`` makes the vector of a text; None: there is none.
    """

    id: str
    config: Architecture
    card: ModelCard
    revision: str
    n_parameters: int
    sites: tuple[Site, ...]
    attentions: tuple[AttentionFacts, ...] = ()
    rotation: Rotation | None = None
    architecture: str = "headlight"
    features: frozenset[str] = frozenset()
    omitted: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, float] = field(default_factory=dict)
    normalization: Normalization = UNCHANGED
    matrices: tuple[str, ...] = ()
    quantization: Quantization | None = None
    heads: Mapping[str, Any] | None = None
    curves: Mapping[str, Any] | None = None
    steps: Sequence[Mapping[str, Any]] = ()
    trained_tokens: int = 0
    longest_text: int = 0
    is_streamed: bool = True
    predicts: Predicts = "token"
    labels: tuple[str, ...] = ()
    pooling: Pooling | None = None

    def __post_init__(self) -> None:
        for name in ("trained_tokens", "longest_text"):
            if not getattr(self, name):
                object.__setattr__(self, name, self.config.max_tokens)

    @property
    def is_of_text(self) -> bool:
        """Whether it predicts labels of the whole text."""
        return self.predicts in ("label", "labels")

    @property
    def is_endless(self) -> bool:
        """Whether no position is the last one that the model can read."""
        return self.config.max_tokens >= NO_LIMIT

    @cached_property
    def site_names(self) -> tuple[str, ...]:
        """The names of the sites, in the order of the module tree."""
        return tuple(site.name for site in self.sites)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """The paths of the attentions whose rows and maps can be observed."""
        paths = (facts.path for facts in self.attentions)
        return tuple(path for path in paths if f"{path}.first_token" in self.site_names)

    @cached_property
    def capturable(self) -> Mapping[str, Site]:
        """The sites by name, and the maps and rows of attentions, which a pass asks for."""
        sites = {site.name: site for site in self.sites}
        heads = {facts.path: facts.n_heads for facts in self.attentions}
        for path in self.observed:
            for name in (*MAPS, ROWS):
                axes = tuple(OBSERVED_AXES[name].split())
                sites[f"{path}.{name}"] = Site(f"{path}.{name}", axes, {"head": heads[path]})
        return sites

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths of the attentions and of the experts."""
        experts = (
            name.rpartition(".")[0] for name in self.site_names if name.endswith(".router_logits")
        )
        return frozenset([*(facts.path for facts in self.attentions), *experts])
