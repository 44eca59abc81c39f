"""Interventions in a forward pass: ablate heads or experts, change attention, round the weights.

    with intervene(model, [HeadAblation(heads=(0, 3), layer=1), Temperature(value=2.0)]):
        model(ids)

An intervention edits tensors at hook points; a `Quantization` replaces weights. A capture inside
the block, and everything later in the pass, sees the edited tensor. Several interventions combine.
Their order does not matter, except for the `SiteEdit`s of one site, which come after all others
there, in the order given.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headlight.model.config import Architecture
from headlight.model.hooks import Edit
from headlight.model.interventions.protocol import (
    ImpossibleIntervention,
    Intervention,
    PlacedIntervention,
    Places,
    SiteEdits,
    Where,
)
from headlight.model.positions import alibi_bias
from headlight.model.quantization.affine import (
    Quantization,
    UnknownPart,
    assigned,
    quantized_weights,
)
from headlight.model.sites import Site, UnknownHead

if TYPE_CHECKING:
    from headlight.model.transformer import Transformer

__all__ = ["ImpossibleIntervention", "Intervention", "Where"]


class UnknownExpert(ValueError):
    """An expert number that the model does not have."""


@dataclass(frozen=True, kw_only=True)
class HeadAblation(PlacedIntervention):
    """Set the context of these heads to 0, so that they write nothing; their weights stay."""

    heads: tuple[int, ...]

    @classmethod
    def combined(cls, interventions: Sequence[HeadAblation], places: Places) -> SiteEdits:
        """Yield an edit for each attention, of all heads that are ablated there."""
        ablated: dict[str, set[int]] = {}
        for ablation in interventions:
            for head in ablation.heads:
                if not 0 <= head < places.config.n_heads:
                    last = places.config.n_heads - 1
                    raise UnknownHead(f"there is no head {head}; the heads are 0 to {last}")
            for path in places.attentions(ablation):
                ablated.setdefault(path, set()).update(ablation.heads)
        for path, heads in ablated.items():
            yield f"{path}.context", partial(_fill, dim=1, index=sorted(heads), value=0.0)


@dataclass(frozen=True, kw_only=True)
class ExpertAblation(PlacedIntervention):
    """Set the router logits of these experts to −∞, so that no token is routed to them."""

    stage = 1
    experts: tuple[int, ...]

    @classmethod
    def combined(cls, interventions: Sequence[ExpertAblation], places: Places) -> SiteEdits:
        """Yield an edit for each layer of experts, of all that are ablated there."""
        ablated: dict[str, set[int]] = {}
        for ablation in interventions:
            ablation._require_known(places.config)
            for path in places.routers(ablation):
                ablated.setdefault(path, set()).update(ablation.experts)
        for path, experts in ablated.items():
            _require_enough(places.config, experts, path)
            fill = partial(_fill, dim=-1, index=sorted(experts), value=-math.inf)
            yield f"{path}.router_logits", fill

    def _require_known(self, config: Architecture) -> None:
        if config.moe is None:
            raise ImpossibleIntervention("the model is dense: it has no experts to switch off")
        for expert in self.experts:
            if not 0 <= expert < config.moe.n_experts:
                last = config.moe.n_experts - 1
                raise UnknownExpert(f"there is no expert {expert}; the experts are 0 to {last}")


@dataclass(frozen=True, kw_only=True)
class NoScaling(PlacedIntervention):
    """Leave Q·Kᵀ undivided by √d_head; the bias of ALiBi stays as it is."""

    stage = 2

    @classmethod
    def combined(cls, interventions: Sequence[NoScaling], places: Places) -> SiteEdits:
        """Yield an edit for each attention, once."""
        config = places.config
        for path in dict.fromkeys(path for each in interventions for path in each.unscaled(places)):
            is_biased = config.positional == "alibi" and path.endswith("self_attention")
            multiply = partial(_multiply, factor=math.sqrt(config.d_head), bias=is_biased)
            yield f"{path}.scores", multiply

    def unscaled(self, places: Places) -> Sequence[str]:
        """As `Intervention.unscaled`."""
        return places.attentions(self)


@dataclass(frozen=True, kw_only=True)
class Temperature(PlacedIntervention):
    """Divide the scores by `value` before the softmax: above 1 flattens rows, below sharpens them.

    It divides unscaled scores, if `NoScaling` acts in the same attention.

    Raises:
        ValueError: the value is not positive and finite.
    """

    stage = 3
    value: float

    def __post_init__(self) -> None:
        if not 0 < self.value < math.inf:
            raise ValueError(f"a temperature ({self.value}) must be a positive number")

    @classmethod
    def combined(cls, interventions: Sequence[Temperature], places: Places) -> SiteEdits:
        """Yield an edit for each attention.

        Raises:
            ImpossibleIntervention: an attention has two temperatures.
        """
        values: dict[str, float] = {}
        for temperature in interventions:
            for path in places.attentions(temperature):
                if path in values:
                    raise ImpossibleIntervention(
                        f"{path} has two temperatures, {values[path]:g} and {temperature.value:g}; "
                        "keep one"
                    )
                values[path] = temperature.value
        for path, value in values.items():
            yield f"{path}.scores", partial(_divide, value=value)


@contextmanager
def intervene(model: Transformer, interventions: Iterable[Intervention]) -> Iterator[None]:
    """Apply the interventions to every pass inside the ``with`` block.

    Raises:
        UnknownLayer, UnknownHead, UnknownExpert, ImpossibleIntervention: as `site_edits`.
        UnknownSite, UnknownPosition: as `Intervention.bind`.
        UnknownPart: a quantization names a part that the model does not have.
    """
    interventions = list(interventions)
    with ExitStack() as stack:
        if quantizations := quantizations_of(interventions):
            stack.enter_context(quantized_weights(model, quantizations))
        for site, edit in site_edits(model.config, bound(model.sites, interventions)):
            stack.enter_context(model.edit(site, edit))
        yield


def quantizations_of(interventions: Iterable[Intervention]) -> tuple[Quantization, ...]:
    """Return the quantizations of all interventions."""
    return tuple(rounding for each in interventions for rounding in each.quantizations)


def require_quantizable(
    matrices: Collection[str],
    interventions: Iterable[Intervention],
    stored: Quantization | None = None,
) -> None:
    """Check that the weights of a model can be rounded as the interventions ask.

    Args:
        matrices: the names of the model's weights that can be quantized.
        interventions: of any kind.
        stored: the quantization of the weights as they were loaded.

    Raises:
        UnknownPart: a part matches no matrix.
        ImpossibleIntervention: the weights are quantized already, are not those of a model of this
            project, or two quantizations overlap.
    """
    quantizations = quantizations_of(interventions)
    if not quantizations:
        return
    if stored is not None:
        raise ImpossibleIntervention(
            f"the weights are quantized already, to {stored.bits} bits; quantize the model that "
            "they were made from"
        )
    if not matrices:
        raise ImpossibleIntervention(
            "only the weights of Headlight's own models can be quantized in a pass; this one's are "
            "used by the code of Hugging Face Transformers"
        )
    try:
        assigned(matrices, quantizations)
    except UnknownPart:
        raise
    except ValueError as error:
        raise ImpossibleIntervention(str(error)) from error


def bound(
    sites: Iterable[Site], interventions: Iterable[Intervention], start: int | None = None
) -> list[Intervention]:
    """Return the interventions, each bound to the sites of a model.

    Arguments and errors are those of `Intervention.bind`.
    """
    sites = tuple(sites)
    return [each.bind(sites, start) for each in interventions]


def site_edits(
    config: Architecture,
    interventions: Iterable[Intervention],
    paths: Collection[str] | None = None,
    *,
    unscales: bool = True,
) -> list[tuple[str, Edit]]:
    """Return the interventions as edits of sites: pairs of a site and a function of its tensor.

    They are in the order of the stages; those of single sites come last, in the order given.

    Args:
        config: the architecture.
        interventions: bound, in any order.
        paths: of the attentions and experts of the model; None: every layer has all of its kind.
        unscales: False leaves out the interventions that remove the factor of Q·Kᵀ.

    Raises:
        UnknownLayer, UnknownHead, UnknownExpert: a number that the model does not have.
        ImpossibleIntervention: the model lacks the attention or the experts, fewer than `top_k`
            experts are left, or one attention has two temperatures.
    """
    places = Places(config, paths)
    listed = [each for each in interventions if unscales or not each.unscaled(places)]
    groups = (tuple(same) for _, same in groupby(sorted(listed, key=_turn), key=type))
    return [pair for same in groups for pair in type(same[0]).combined(same, places)]


def _turn(intervention: Intervention) -> tuple[int, str]:
    """Return the sort key of an intervention; those of one kind come together."""
    stage = intervention.stage
    return stage, "" if stage == Intervention.SITES else type(intervention).__qualname__


def unscaled_paths(
    config: Architecture,
    interventions: Iterable[Intervention],
    paths: Collection[str] | None,
) -> frozenset[str]:
    """Return the paths of the attentions whose factor is left out; arguments as in `site_edits`."""
    places = Places(config, paths)
    return frozenset(path for each in interventions for path in each.unscaled(places))


def _require_enough(config: Architecture, ablated: set[int], path: str) -> None:
    assert config.moe is not None
    n_experts, top_k = config.moe.n_experts, config.moe.top_k
    if (left := n_experts - len(ablated)) < top_k:
        raise ImpossibleIntervention(
            f"{path} routes every token to {top_k} of its {n_experts} experts, and only {left} "
            f"would be left; switch at most {n_experts - top_k} off"
        )


def _fill(tensor: Tensor, *, dim: int, index: list[int], value: float) -> Tensor:
    return tensor.index_fill(dim, tensor.new_tensor(index, dtype=torch.int64), value)


def _multiply(scores: Tensor, *, factor: float, bias: bool) -> Tensor:
    if not bias:
        return scores * factor
    n_heads, n_queries, n_keys = scores.shape[-3:]
    added = alibi_bias(n_heads, n_queries, n_keys, scores.device)
    return (scores - added) * factor + added


def _divide(scores: Tensor, *, value: float) -> Tensor:
    return scores / value
