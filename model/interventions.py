"""What may be changed in a pass: heads and experts switched off, the softmax of attention bent.

    with editing(model, [HeadsOff(heads=(0, 3), layer=1), Temperature(value=2.0)]):
        model(ids)

An edit acts at hook points, so a capture inside the block sees what it left, and so does all that
follows in the pass. Several edits of one place add up, in whatever order they are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from headlight.model.config import TransformerConfig
from headlight.model.hooks import Edit
from headlight.model.positions import alibi_bias
from headlight.model.sites import UnknownHead, UnknownLayer
from headlight.model.transformer import Transformer

Where: TypeAlias = Literal["encoder", "decoder", "cross"]

ATTENTIONS: dict[Where, str] = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}


class UnknownExpert(ValueError):
    """An expert number that the model does not have."""


class ImpossibleEdit(ValueError):
    """An edit of something that the model has not, or that would leave nothing to compute."""


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where an edit acts: in one layer, None in all; in one attention or stack, None in all."""

    layer: int | None = None
    where: Where | None = None


@dataclass(frozen=True, kw_only=True)
class HeadsOff(_Place):
    """These heads write nothing: their context becomes 0. Their weights stay to be seen."""

    heads: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ExpertsOff(_Place):
    """These experts are never chosen: their router logits become −∞."""

    experts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class NoScaling(_Place):
    """Queries times keys are not divided by √d_head; what ALiBi adds stays as it is."""


@dataclass(frozen=True, kw_only=True)
class Temperature(_Place):
    """The scores are divided by `value` before the softmax: above 1 rows even out, below sharpen.

    Raises:
        ValueError: the value is no positive number.
    """

    value: float

    def __post_init__(self) -> None:
        if not 0 < self.value < math.inf:
            raise ValueError(f"a temperature ({self.value}) must be a positive number")


PassEdit: TypeAlias = HeadsOff | ExpertsOff | NoScaling | Temperature


@contextmanager
def editing(model: Transformer, edits: Iterable[PassEdit]) -> Iterator[None]:
    """Have these edits in force in every pass inside the ``with`` block.

    Raises:
        UnknownLayer, UnknownHead, UnknownExpert, ImpossibleEdit: as `hooks_of`.
    """
    with ExitStack() as stack:
        for site, edit in hooks_of(model.config, edits):
            stack.enter_context(model.edit(site, edit))
        yield


def hooks_of(config: TransformerConfig, edits: Iterable[PassEdit]) -> list[tuple[str, Edit]]:
    """What these edits do: pairs of a site and a function of the tensor there, in order.

    The scaling comes before the temperature, which divides the scores that there are then.

    Raises:
        UnknownLayer, UnknownHead, UnknownExpert: a number that the model does not have.
        ImpossibleEdit: an attention or experts that the model has not, fewer experts left than a
            token visits, or two temperatures for one attention.
    """
    listed = list(edits)
    return [
        *_heads_off(config, [edit for edit in listed if isinstance(edit, HeadsOff)]),
        *_experts_off(config, [edit for edit in listed if isinstance(edit, ExpertsOff)]),
        *_no_scaling(config, [edit for edit in listed if isinstance(edit, NoScaling)]),
        *_temperatures(config, [edit for edit in listed if isinstance(edit, Temperature)]),
    ]


def _heads_off(config: TransformerConfig, edits: Sequence[HeadsOff]) -> Iterator[tuple[str, Edit]]:
    off: dict[str, set[int]] = {}
    for edit in edits:
        for head in edit.heads:
            if not 0 <= head < config.n_heads:
                last = config.n_heads - 1
                raise UnknownHead(f"there is no head {head}; the heads are 0 to {last}")
        for path in _attentions(config, edit):
            off.setdefault(path, set()).update(edit.heads)
    for path, heads in off.items():
        yield f"{path}.context", partial(_fill, dim=1, index=sorted(heads), value=0.0)


def _experts_off(
    config: TransformerConfig, edits: Sequence[ExpertsOff]
) -> Iterator[tuple[str, Edit]]:
    off: dict[str, set[int]] = {}
    for edit in edits:
        for path in _routers(config, edit):
            off.setdefault(path, set()).update(edit.experts)
    for path, experts in off.items():
        _require_enough(config, experts, path)
        yield (
            f"{path}.router_logits",
            partial(_fill, dim=-1, index=sorted(experts), value=-math.inf),
        )


def _no_scaling(
    config: TransformerConfig, edits: Sequence[NoScaling]
) -> Iterator[tuple[str, Edit]]:
    paths = dict.fromkeys(path for edit in edits for path in _attentions(config, edit))
    for path in paths:
        is_biased = config.positional == "alibi" and path.endswith("self_attention")
        yield f"{path}.scores", partial(_unscale, factor=math.sqrt(config.d_head), bias=is_biased)


def _temperatures(
    config: TransformerConfig, edits: Sequence[Temperature]
) -> Iterator[tuple[str, Edit]]:
    values: dict[str, float] = {}
    for edit in edits:
        for path in _attentions(config, edit):
            if path in values:
                raise ImpossibleEdit(
                    f"{path} has two temperatures, {values[path]:g} and {edit.value:g}; keep one"
                )
            values[path] = edit.value
    for path, value in values.items():
        yield f"{path}.scores", partial(_divide, value=value)


def _attentions(config: TransformerConfig, place: _Place) -> list[str]:
    """The attentions that an edit reaches, by path."""
    exist: dict[Where, bool] = {
        "encoder": config.has_encoder,
        "decoder": config.has_decoder,
        "cross": config.kind == "encoder-decoder",
    }
    known = [where for where in ATTENTIONS if exist[where]]
    return [
        ATTENTIONS[where].format(layer)
        for where in _chosen(place.where, known, "attention")
        for layer in _layers(config, place.layer)
    ]


def _routers(config: TransformerConfig, place: ExpertsOff) -> list[str]:
    """The experts that an edit reaches, by path."""
    if config.moe is None:
        raise ImpossibleEdit("the model is dense: it has no experts to switch off")
    for expert in place.experts:
        if not 0 <= expert < config.moe.n_experts:
            last = config.moe.n_experts - 1
            raise UnknownExpert(f"there is no expert {expert}; the experts are 0 to {last}")
    layers = [layer for layer in _layers(config, place.layer) if config.has_experts(layer)]
    if not layers:
        routed = ", ".join(map(str, config.moe.layers))
        raise ImpossibleEdit(f"layer {place.layer} has no experts; layers with experts: {routed}")
    exist: dict[Where, bool] = {"encoder": config.has_encoder, "decoder": config.has_decoder}
    known = [where for where, is_there in exist.items() if is_there]
    stacks = _chosen(place.where, known, "experts")
    return [f"{stack}.layers.{layer}.experts" for stack in stacks for layer in layers]


def _chosen(where: Where | None, known: list[Where], what: str) -> list[Where]:
    if where is None:
        return known
    if where not in known:
        there = " and ".join(known)
        raise ImpossibleEdit(f"the model has no {what} at '{where}'; it has {what} at {there}")
    return [where]


def _layers(config: TransformerConfig, layer: int | None) -> list[int]:
    if layer is None:
        return list(range(config.n_layers))
    if not 0 <= layer < config.n_layers:
        raise UnknownLayer(f"there is no layer {layer}; the layers are 0 to {config.n_layers - 1}")
    return [layer]


def _require_enough(config: TransformerConfig, off: set[int], path: str) -> None:
    assert config.moe is not None
    n_experts, top_k = config.moe.n_experts, config.moe.top_k
    if (left := n_experts - len(off)) < top_k:
        raise ImpossibleEdit(
            f"of the {n_experts} experts of {path} {left} would be left, and every token visits "
            f"{top_k}; switch at most {n_experts - top_k} off"
        )


def _fill(tensor: Tensor, *, dim: int, index: list[int], value: float) -> Tensor:
    return tensor.index_fill(dim, tensor.new_tensor(index, dtype=torch.int64), value)


def _unscale(scores: Tensor, *, factor: float, bias: bool) -> Tensor:
    if not bias:
        return scores * factor
    n_heads, n_queries, n_keys = scores.shape[-3:]
    added = alibi_bias(n_heads, n_queries, n_keys, scores.device)
    return (scores - added) * factor + added


def _divide(scores: Tensor, *, value: float) -> Tensor:
    return scores / value
