"""Interventions in a forward pass: ablate heads or experts, change attention, round the weights.

    with intervene(model, [HeadAblation(heads=(0, 3), layer=1), Temperature(value=2.0)]):
        model(ids)

An intervention edits tensors at hook points; a `Quantization` replaces weights. A capture inside
the block, and everything later in the pass, sees the edited tensor. Several interventions combine.
Their order does not matter, except for the `SiteEdit`s of one site, which come after all others
there, in the order given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

from headlight.model.config import Architecture
from headlight.model.hooks import Edit
from headlight.model.interventions.intervention import ImpossibleIntervention, Intervention, Places
from headlight.model.quantization.affine import (
    Quantization,
    UnknownPart,
    assigned,
    quantized_weights,
)
from headlight.model.sites import Site

if TYPE_CHECKING:
    from headlight.model.transformer import Transformer


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
        ImpossibleIntervention: the weights are quantized already, are not named, or two
            quantizations overlap.
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
            "this model has no weights that can be quantized; add it again, so that they are named"
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
    config: Architecture, interventions: Iterable[Intervention], paths: Collection[str] | None
) -> frozenset[str]:
    """Return the paths of the attentions whose factor is left out; arguments as in `site_edits`."""
    places = Places(config, paths)
    return frozenset(path for each in interventions for path in each.unscaled(places))
