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
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from headlight.model.config import Architecture
from headlight.model.hooks import Edit
from headlight.model.positions import alibi_bias
from headlight.model.quantization import Quantization, UnknownPart, assigned, quantized_weights
from headlight.model.site_edit import ImpossibleIntervention as ImpossibleIntervention
from headlight.model.site_edit import RowEdits, SiteEdit, bind
from headlight.model.sites import Site, UnknownHead, UnknownLayer
from headlight.model.transformer import Transformer

Where: TypeAlias = Literal["encoder", "decoder", "cross"]

ATTENTIONS: dict[Where, str] = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}


class UnknownExpert(ValueError):
    """An expert number that the model does not have."""


@dataclass(frozen=True, kw_only=True)
class _Place:
    """The place of an intervention in the model.

    ``layer``: in one layer; None: in all. ``where``: in one attention (encoder, decoder, cross) or
    in the experts of one stack; None: in all.
    """

    layer: int | None = None
    where: Where | None = None


@dataclass(frozen=True, kw_only=True)
class HeadAblation(_Place):
    """Set the context of these heads to 0, so that they write nothing; their weights stay."""

    heads: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ExpertAblation(_Place):
    """Set the router logits of these experts to −∞, so that no token is routed to them."""

    experts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class NoScaling(_Place):
    """Leave Q·Kᵀ undivided by √d_head; the bias of ALiBi stays as it is."""


@dataclass(frozen=True, kw_only=True)
class Temperature(_Place):
    """Divide the scores by `value` before the softmax: above 1 flattens rows, below sharpens them.

    Raises:
        ValueError: the value is not positive and finite.
    """

    value: float

    def __post_init__(self) -> None:
        if not 0 < self.value < math.inf:
            raise ValueError(f"a temperature ({self.value}) must be a positive number")


Intervention: TypeAlias = (
    HeadAblation | ExpertAblation | NoScaling | Temperature | Quantization | SiteEdit | RowEdits
)


@contextmanager
def intervene(model: Transformer, interventions: Iterable[Intervention]) -> Iterator[None]:
    """Apply the interventions to every pass inside the ``with`` block.

    Raises:
        UnknownLayer, UnknownHead, UnknownExpert, ImpossibleIntervention: as `site_edits`.
        UnknownSite, UnknownPosition: as `bind`.
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
    """Those of the interventions that round weights."""
    return tuple(one for one in interventions if isinstance(one, Quantization))


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
    """The interventions, each `SiteEdit` with the axes of its site.

    Args:
        sites: of the model.
        interventions: in any state.
        start: the position of the first query of the pass, after those of a cache; None: as it is.

    Raises:
        UnknownSite, UnknownHead, UnknownPosition, ImpossibleIntervention: as `bind`.
    """
    found: list[Intervention] = []
    sites = tuple(sites)
    for one in interventions:
        if isinstance(one, SiteEdit):
            edit = one if one.axes else bind(one, sites)
            found.append(edit if start is None else replace(edit, start=start))
        elif isinstance(one, RowEdits):
            found.append(one.bound(sites))
        else:
            found.append(one)
    return found


def site_edits(
    config: Architecture,
    interventions: Iterable[Intervention],
    paths: Collection[str] | None = None,
) -> list[tuple[str, Edit]]:
    """The interventions as edits of sites: pairs of a site and a function of its tensor, in order.

    A `Quantization` edits no site, so it is left out. Unscaling comes before the temperature, which
    then divides the unscaled scores. The edits of single sites, which are bound (`bound`), come
    last, in their order.

    Args:
        config: the architecture.
        interventions: in any order.
        paths: of the attentions and experts of the model; None: every layer has all of its kind.

    Raises:
        UnknownLayer, UnknownHead, UnknownExpert: a number that the model does not have.
        ImpossibleIntervention: the model lacks the attention or the experts, fewer than `top_k`
            experts are left, or one attention has two temperatures.
    """
    listed = list(interventions)
    places = _Places(config, paths)
    return [
        *_ablate_heads(places, [one for one in listed if isinstance(one, HeadAblation)]),
        *_ablate_experts(places, [one for one in listed if isinstance(one, ExpertAblation)]),
        *_unscale(places, [one for one in listed if isinstance(one, NoScaling)]),
        *_apply_temperatures(places, [one for one in listed if isinstance(one, Temperature)]),
        *((one.site, one.apply) for one in listed if isinstance(one, SiteEdit | RowEdits)),
    ]


def unscaled_paths(
    config: Architecture,
    interventions: Iterable[Intervention],
    paths: Collection[str] | None,
) -> frozenset[str]:
    """The paths of the attentions that `NoScaling` acts on; arguments as in `site_edits`."""
    places = _Places(config, paths)
    found = (one for one in interventions if isinstance(one, NoScaling))
    return frozenset(path for one in found for path in _attentions(places, one))


@dataclass(frozen=True)
class _Places:
    """The places of a model that an intervention can act on."""

    config: Architecture
    paths: Collection[str] | None

    def existing(self, paths: Sequence[str], what: str) -> list[str]:
        """Those of the paths that the model has.

        Raises:
            ImpossibleIntervention: it has none.
        """
        found = [path for path in paths if self.paths is None or path in self.paths]
        if not found:
            raise ImpossibleIntervention(f"the model has no {what} at {', '.join(paths[:3])}")
        return found


def _ablate_heads(places: _Places, ablations: Sequence[HeadAblation]) -> Iterator[tuple[str, Edit]]:
    ablated: dict[str, set[int]] = {}
    for ablation in ablations:
        for head in ablation.heads:
            if not 0 <= head < places.config.n_heads:
                last = places.config.n_heads - 1
                raise UnknownHead(f"there is no head {head}; the heads are 0 to {last}")
        for path in _attentions(places, ablation):
            ablated.setdefault(path, set()).update(ablation.heads)
    for path, heads in ablated.items():
        yield f"{path}.context", partial(_fill, dim=1, index=sorted(heads), value=0.0)


def _ablate_experts(
    places: _Places, ablations: Sequence[ExpertAblation]
) -> Iterator[tuple[str, Edit]]:
    ablated: dict[str, set[int]] = {}
    for ablation in ablations:
        for path in _routers(places, ablation):
            ablated.setdefault(path, set()).update(ablation.experts)
    for path, experts in ablated.items():
        _require_enough(places.config, experts, path)
        yield (
            f"{path}.router_logits",
            partial(_fill, dim=-1, index=sorted(experts), value=-math.inf),
        )


def _unscale(places: _Places, interventions: Sequence[NoScaling]) -> Iterator[tuple[str, Edit]]:
    paths = dict.fromkeys(path for one in interventions for path in _attentions(places, one))
    for path in paths:
        config = places.config
        is_biased = config.positional == "alibi" and path.endswith("self_attention")
        yield f"{path}.scores", partial(_multiply, factor=math.sqrt(config.d_head), bias=is_biased)


def _apply_temperatures(
    places: _Places, temperatures: Sequence[Temperature]
) -> Iterator[tuple[str, Edit]]:
    values: dict[str, float] = {}
    for temperature in temperatures:
        for path in _attentions(places, temperature):
            if path in values:
                raise ImpossibleIntervention(
                    f"{path} has two temperatures, {values[path]:g} and {temperature.value:g}; "
                    "keep one"
                )
            values[path] = temperature.value
    for path, value in values.items():
        yield f"{path}.scores", partial(_divide, value=value)


def _attentions(places: _Places, place: _Place) -> list[str]:
    """The paths of the attentions on which an intervention acts."""
    config = places.config
    exist: dict[Where, bool] = {
        "encoder": config.has_encoder,
        "decoder": config.has_decoder,
        "cross": config.kind == "encoder-decoder",
    }
    known = [where for where in ATTENTIONS if exist[where]]
    paths = [
        ATTENTIONS[where].format(layer)
        for where in _chosen(place.where, known, "attention")
        for layer in _layers(config, place.layer)
    ]
    return places.existing(paths, "attention")


def _routers(places: _Places, place: ExpertAblation) -> list[str]:
    """The paths of the expert layers on which an ablation acts."""
    config = places.config
    if config.moe is None:
        raise ImpossibleIntervention("the model is dense: it has no experts to switch off")
    for expert in place.experts:
        if not 0 <= expert < config.moe.n_experts:
            last = config.moe.n_experts - 1
            raise UnknownExpert(f"there is no expert {expert}; the experts are 0 to {last}")
    layers = [layer for layer in _layers(config, place.layer) if config.has_experts(layer)]
    if not layers:
        routed = ", ".join(map(str, config.moe.layers))
        raise ImpossibleIntervention(
            f"layer {place.layer} has no experts; layers with experts: {routed}"
        )
    exist: dict[Where, bool] = {"encoder": config.has_encoder, "decoder": config.has_decoder}
    known = [where for where, is_there in exist.items() if is_there]
    stacks = _chosen(place.where, known, "experts")
    paths = [f"{stack}.layers.{layer}.experts" for stack in stacks for layer in layers]
    return places.existing(paths, "experts")


def _chosen(where: Where | None, known: list[Where], what: str) -> list[Where]:
    if where is None:
        return known
    if where not in known:
        there = " and ".join(known)
        raise ImpossibleIntervention(
            f"the model has no {what} at '{where}'; it has {what} at {there}"
        )
    return [where]


def _layers(config: Architecture, layer: int | None) -> list[int]:
    if layer is None:
        return list(range(config.n_layers))
    if not 0 <= layer < config.n_layers:
        raise UnknownLayer(f"there is no layer {layer}; the layers are 0 to {config.n_layers - 1}")
    return [layer]


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
