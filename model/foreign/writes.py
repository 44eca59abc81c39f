"""Find what each part adds to the residual stream: its output, behind a norm or times a factor.

A step of the stream is after = carry·before + Σ factor·output, feature by feature. Carry and
factors are fitted to the first text of the recorded pass and hold if they explain every text of it.
An output is that of the module that a part ends with, or of a later one, as the norm behind the
projection in OLMo 2 and Gemma 2. A norm's output is its input times a gain, which is that of the
pass: the scale of the norm, frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import NamedTuple

import torch
from torch import Tensor, nn

from headlight.model.foreign.attention_facts import same, tolerance_of
from headlight.model.foreign.probe import Call
from headlight.model.foreign.sites import Hook, Named, NamedLayer, Step
from headlight.model.hooks import HookPoint
from headlight.model.weights import distance_of_sum

LEAST_FACTOR = 1e-3
"""A factor below it is none: the output does not explain the step."""
MOST_OUTPUTS = 12
"""The later modules of a step that may make what enters the stream."""


class Fit(NamedTuple):
    """The factors (d_model) of the stream and of each output; None: 1 for every feature."""

    carry: Tensor | None
    factors: tuple[Tensor | None, ...]


def fit_step(before: Tensor, outputs: Sequence[Tensor], after: Tensor) -> Fit | None:
    """Find the factors by which a step of the stream is the sum of the stream and of outputs.

    The fewest are tried first: none, one number for each output, one for the stream too, then one
    for each feature.

    Args:
        before: (batch, token, d_model).
        outputs: of the same shape.
        after: of the same shape.

    Returns:
        None: no factors explain every text.
    """
    columns = torch.stack([before, *outputs]).double().cpu()
    target = after.double().cpu()
    limit = 0.5 * tolerance_of(after)
    if distance_of_sum(columns.sum(dim=0), before, after) <= limit:
        return Fit(None, (None,) * len(outputs))
    every = range(len(columns))
    for by_feature in (False, True):
        for free in (every[1:], every[:1], every):
            factors = _factors(columns, target, free, by_feature=by_feature)
            made = (columns * factors[:, None, None]).sum(dim=0)
            is_there = bool((factors.abs() > LEAST_FACTOR).all())
            if is_there and distance_of_sum(made, before, after) <= limit:
                return Fit(
                    factors[0] if 0 in free else None,
                    tuple(factors[place] if place in free else None for place in every[1:]),
                )
    return None


def _factors(columns: Tensor, target: Tensor, free: Sequence[int], *, by_feature: bool) -> Tensor:
    """Return least squares' factors (column, d_model) for the first text; 1 where fixed."""
    held = [place for place in range(len(columns)) if place not in free]
    rest = (target - columns[held].sum(dim=0))[0]  # token d_model
    rows = columns[list(free), 0]  # column token d_model
    sizes = target.abs().flatten(0, 1).amax(dim=0).clamp(min=1e-30)
    rows, rest = rows / sizes, rest / sizes  # massive activations weigh no more than others
    if by_feature:
        rows, rest = rows.permute(2, 1, 0), rest.T[..., None]
    else:
        rows, rest = rows.flatten(1).T[None], rest.flatten()[None, :, None]
    solved = torch.linalg.lstsq(rows, rest, driver="gelsd").solution[..., 0].T
    factors = torch.ones(len(columns), target.shape[-1], dtype=torch.float64)
    factors[list(free)] = solved
    return factors


# --- the writes of a layer ------------------------------------------------------------------------


@dataclass
class Part:
    """A part of a layer: its path, when it is computed, the call that its output is of, its point.

    ``call`` None: no output of the part is known yet.
    """

    path: str
    start: int
    call: Call | None = None
    point: HookPoint | None = None


class _Write(NamedTuple):
    """A tensor that may enter the stream, and the call that made it."""

    call: Call
    output: Tensor


def place_outputs(
    named: Named, layer: NamedLayer, places: Sequence[tuple[str, Tensor]], ends: Sequence[int]
) -> None:
    """Let the points of the outputs of a layer's parts see what enters the stream.

    Args:
        named: with the hooks of the outputs.
        layer: whose parts they are.
        places: the names and tensors of its stream, in order.
        ends: the time at which each step to the next place ends.
    """
    waiting = list(parts_of(named, layer).values())
    for (_, before), (name, after), end in zip(places, places[1:], ends, strict=False):
        parts = waiting if name == "after" else waiting[:1]
        waiting = waiting[len(parts) :]
        if not layer.attentions or len(parts) > 1:  # no search for a part among those of others
            parts = [part for part in parts if part.call is not None]
        if parts:
            _place(named, layer, (before, after), parts, end)


def parts_of(named: Named, layer: NamedLayer) -> dict[str, Part]:
    """Return the parts of a layer in order, by path."""
    parts = {
        path: Part(path, attention.time)
        for kind, attention in layer.attentions.items()
        for path in [f"{layer.path}.{kind}"]
    }
    last = max((part.start for part in parts.values()), default=layer.call.start)
    experts = f"{layer.path}.experts"
    has_experts = experts in named.experts
    path = experts if has_experts else f"{layer.path}.feed_forward"
    parts[path] = Part(path, last)
    for hook in named.hooks:
        for path, part in parts.items():
            if named.points.get(f"{path}.output") is hook.point:
                part.call, part.point = hook.call, hook.point
    return parts


def _place(
    named: Named, layer: NamedLayer, ends: tuple[Tensor, Tensor], parts: Sequence[Part], until: int
) -> None:
    """Find the outputs that make a step, and move the points to them."""
    before, after = ends
    for base, is_stream in bases_of(layer, before, parts[0].start):
        for writes in _choices(layer, before, parts, until):
            fit = fit_step(base, [write.output for write in writes], after)
            if fit is None:
                continue
            paths = tuple(part.path for part in parts)
            named.entering.update(paths)
            if is_stream:
                named.steps.append(Step(layer.stack, paths, fit.carry))
            else:
                named.omitted["sum"] = (
                    f"{layer.path} adds what its parts write to a norm of the stream, times a "
                    "factor, and not to the stream"
                )
            for part, write, factor in zip(parts, writes, fit.factors, strict=True):
                _move(named, part, write, factor)
            return


def bases_of(layer: NamedLayer, before: Tensor, until: int) -> Iterator[tuple[Tensor, bool]]:
    """Yield the stream and True, then each norm of it before a time, and False."""
    yield before, True
    for call in layer.inner:
        if call.start < until and call.inputs and call.outputs and is_norm(call):
            given, made = call.inputs[0], call.outputs[0]
            if given.shape == made.shape == before.shape and same(given, before):
                yield made, False


def _choices(
    layer: NamedLayer, before: Tensor, parts: Sequence[Part], until: int
) -> Iterator[tuple[_Write, ...]]:
    """Yield the outputs that may enter the stream, the parts' own first."""
    by_part: list[list[_Write]] = []
    for part in parts:
        calls = [] if part.call is None else [part.call]
        start = part.start if part.call is None else part.call.end
        calls += [inner for inner in layer.inner if start < inner.end <= until]
        others = {id(other.call) for other in parts if other is not part}
        by_part.append(
            [
                _Write(call, call.outputs[0].reshape(before.shape))
                for call in calls
                if id(call) not in others
                and call.outputs
                and call.outputs[0].numel() == before.numel()
                and call.places[0] in (None, 0)
            ][:MOST_OUTPUTS]
        )
    for writes in product(*by_part):
        if not any(same(first.output, second.output) for first, second in combinations(writes, 2)):
            yield writes


def _move(named: Named, part: Part, write: _Write, factor: Tensor | None) -> None:
    """Let the point of a part's output see what enters the stream."""
    if write.call is part.call and factor is None:
        return
    scale = None if factor is None else factor.float()
    place = write.call.places[0]
    if part.call is None or part.point is None:
        point = named.point(f"{part.path}.output", "batch query d_model", d_model=named.d_model)
        named.hooks.append(Hook(write.call, place, True, point, factor=scale))
        if (reason := named.omitted.pop(part.path, None)) is not None:
            named.omitted[f"{part.path}.hidden"] = reason
        if (reason := named.omitted.pop(f"{part.path}.output", None)) is not None:
            named.omitted[f"{part.path}.head_outputs"] = reason
        return
    gain = None
    if write.call is not part.call:
        gain = gain_of(write.call, part.call.outputs[0])
        if part.path in named.projections and gain is None:
            del named.projections[part.path]
            named.omitted[f"{part.path}.head_outputs"] = (
                f"a {type(write.call.module).__name__} lies between the projection of the context "
                "and the stream, so what each head adds is not known"
            )
    (hook,) = (hook for hook in named.hooks if hook.point is part.point)
    named.hooks.remove(hook)
    if gain is not None and part.path in named.projections:
        whole = gain if scale is None else gain * scale.to(gain.device)
        point = named.point(f"{part.path}.gain", "batch query d_model", d_model=named.d_model)
        named.hooks.append(Hook(write.call, place, True, point, gain=whole))
    elif scale is not None:
        named.factors[part.path] = scale
    named.hooks.append(Hook(write.call, place, True, part.point, factor=scale))


def gain_of(call: Call, output: Tensor) -> Tensor | None:
    """Return the weight (d_model) of an RMSNorm that is given an output; None: it is none.

    What it makes of x is x times the weight times a number for each token.
    """
    if not is_norm(call) or not call.inputs or not same(call.inputs[0], output):
        return None
    given, made = call.inputs[0], call.outputs[0]
    with torch.inference_mode():
        weight: Tensor = type(call.module).forward(
            call.module, torch.ones_like(given.reshape(-1, given.shape[-1])[:1])
        )[0]
    made_again = given * gains(given, made, weight)
    return weight.detach().clone() if same(made_again, made) else None


def gains(given: Tensor, made: Tensor, weight: Tensor) -> Tensor:
    """Return the gain (…, d_model) of each token of a norm whose weight is known."""
    scaled = given.double() * weight.double()
    square = (scaled * scaled).sum(dim=-1, keepdim=True).clamp(min=1e-300)
    share = (made.double() * scaled).sum(dim=-1, keepdim=True) / square
    return (share * weight.double()).to(made.dtype)


def is_norm(call: Call) -> bool:
    """Return True if a module is a norm, by its class's name."""
    module: nn.Module = call.module
    return "norm" in type(module).__name__.lower() and not list(module.children())


def reach_of(named: Named, stack: str) -> dict[str, Tensor]:
    """Return the factor (d_model) by which the last stream of a stack holds what each part wrote.

    By the path of the part, and of the embedding by ``{stack}.embedding``; 1 where it is missing.
    """
    reach: dict[str, Tensor] = {}
    later: Tensor | None = None
    for step in reversed([step for step in named.steps if step.stack == stack]):
        if later is not None:
            reach |= dict.fromkeys(step.paths, later)
        if step.carry is not None:
            later = step.carry if later is None else later * step.carry
    if later is not None:
        reach[f"{stack}.embedding"] = later
    return reach
