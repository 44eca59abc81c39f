"""The positional encoding of a foreign model: its tables, rotations, slopes or biases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.attention.scores import scaled_product
from headlight.model.foreign.attention_facts import same
from headlight.model.foreign.passes import ForeignPasses
from headlight.model.foreign.rotations import separates, speeds_at, switches_of
from headlight.model.foreign.sites import Named, rows_of
from headlight.model.positions import BASE, as_named
from headlight.model.trace import NamedArray, Rotation


def positional_of(named: Named, recorded: Any) -> str:
    """Return the scheme: learned, sinusoidal, rotary, alibi, relative or none."""
    if named.is_rotary or _rotary_module(recorded.model) is not None:
        return "rotary"
    for table, start in named.tables.values():
        first = rows_of(table)[start]
        # At position 0 every sine is 0 and every cosine 1.
        is_wave = bool(((first == 0) | (first == 1)).all()) and bool((first == 1).any())
        return "sinusoidal" if is_wave else "learned"
    if named.has_bias:
        bias = _recorded_bias(named)
        return "alibi" if bias is not None and _slopes(bias) is not None else "relative"
    return "none"


def encoding_of(model: ForeignPasses, n: int, rotation: Rotation | None) -> dict[str, NamedArray]:
    """Return the encoding of the positions 0 … n−1; see `headlight.model.positions`.

    A relative bias is read from a pass over n tokens: (head, query, key) of the first layer.

    Raises:
        ValueError: the model encodes no positions, or fewer.
    """
    scheme, named = model.config.positional, model.named
    if n > model.config.max_tokens:
        raise ValueError(f"the model has {model.config.max_tokens} positions, not {n}")
    if scheme in ("learned", "sinusoidal"):
        tables = {
            stack: rows_of(table)[start : start + n]
            for stack, (table, start) in named.tables.items()
        }
        return {
            "encoding" if len(tables) == 1 else f"{stack}.encoding": as_named(
                "position d_model", table
            )
            for stack, table in tables.items()
        }
    if scheme == "rotary":
        return _rotation(rotation_at(model, rotation, n), n)
    if scheme in ("alibi", "relative"):
        bias = _bias(model, n)
        slopes = _slopes(bias) if scheme == "alibi" else None
        encoding = {"bias": as_named("head query key", bias)}
        return encoding if slopes is None else {"slopes": as_named("head", slopes), **encoding}
    raise ValueError("the model encodes no positions that were recognised")


def _rotary_module(model: nn.Module) -> nn.Module | None:
    for module in model.modules():
        if "rotary" in type(module).__name__.lower() and any(
            name.endswith("inv_freq") for name, _ in module.named_buffers(recurse=False)
        ):
            return module
    return None


def rotation_of(model: nn.Module, before: Tensor, after: Tensor) -> tuple[Rotation, float] | None:
    """Return the rotation between queries of the first layer, and how far it is from them at most.

    Args:
        model: of Transformers; its modules hold the speeds of the pairs.
        before: queries (batch, head, query, d_head) from position 0 on.
        after: the same, rotated.

    Returns:
        None: no speeds and no order of the pairs give the rotated queries.
    """
    width = before.shape[-1]
    for speeds, factor in _speeds(model, width):
        n_pairs = len(speeds)
        for start in dict.fromkeys((0, width - 2 * n_pairs)):
            halves = torch.arange(n_pairs) + start, torch.arange(n_pairs) + start + n_pairs
            neighbours = torch.arange(n_pairs) * 2 + start, torch.arange(n_pairs) * 2 + start + 1
            for first, second in (halves, neighbours):
                angles = torch.arange(before.shape[2], device=before.device)[:, None] * speeds
                turned = before.double().clone()
                cos, sin = angles.double().cos() * factor, angles.double().sin() * factor
                turned[..., first] = before[..., first] * cos - before[..., second] * sin
                turned[..., second] = before[..., second] * cos + before[..., first] * sin
                if same(turned.to(after.dtype), after, 10):
                    base, scaling = _scaling_of(model)
                    rotation = Rotation(
                        first=tuple(first.tolist()),
                        second=tuple(second.tolist()),
                        speeds=tuple(speeds.tolist()),
                        factor=factor,
                        base=base,
                        scaling=scaling,
                        n_tokens=before.shape[2] if switches_of(model) else 0,
                    )
                    return rotation, float((turned - after).abs().max())
    return None


def _speeds(model: nn.Module, width: int) -> Iterator[tuple[Tensor, float]]:
    """Yield the radians per position of each pair, with the factor of the rotated numbers.

    An older file computes its tables once, with the base of the paper, and keeps no speeds.
    """
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name.endswith("inv_freq") and "original" not in name and 2 * len(buffer) <= width:
                scaling = name.replace("inv_freq", "attention_scaling")
                yield buffer.float(), float(getattr(module, scaling, 1.0))
    config = _text_config(model)
    rotated = getattr(config, "rotary_dim", None) or width
    pairs = torch.arange(0, rotated, 2, device=next(model.parameters()).device)
    yield BASE ** (-pairs.float() / rotated), 1.0


def _text_config(model: nn.Module) -> Any:
    return model.config.get_text_config()  # type: ignore[operator, union-attr]  # no tensor


def _scaling_of(model: nn.Module) -> tuple[float | None, dict[str, str | int | float | bool]]:
    """Return the base of the speeds by the config, and the settings that change them."""
    config = _text_config(model)
    parameters = getattr(config, "rope_parameters", None) or {"rope_theta": BASE}
    kinds = getattr(config, "layer_types", None)
    if kinds and isinstance(parameters.get(kinds[0]), dict):
        parameters = parameters[kinds[0]]
    base = parameters.get("rope_theta")
    plain = {
        name: value
        for name, value in parameters.items()
        if isinstance(value, str | int | float) and name != "rope_theta"
    }
    return base, {} if plain.get("rope_type", "default") == "default" else plain


def rotation_at(model: ForeignPasses, rotation: Rotation | None, n: int) -> Rotation | None:
    """Return the rotation of a text of n tokens, which a switch may make another one."""
    if rotation is None or not separates(model.switches, (rotation.n_tokens, n)):
        return rotation
    for module in model.module.modules():
        if not hasattr(module, "rope_type"):
            continue
        short, there = (speeds_at(module, length) for length in (rotation.n_tokens, n))
        for name, (speeds, _) in short.items():
            if torch.equal(speeds.cpu(), torch.tensor(rotation.speeds)):
                speeds, factor = there[name]
                return replace(rotation, speeds=tuple(speeds.tolist()), factor=factor, n_tokens=n)
    return None


def _rotation(rotation: Rotation | None, n: int) -> dict[str, NamedArray]:
    """Return the angles of the first layer, with its scaling of positions and of lengths."""
    if rotation is None:
        raise ValueError("the rotation of this model's queries was not recognised")
    angles = torch.arange(n)[:, None] * torch.tensor(rotation.speeds)
    factor = rotation.factor
    made = {"angles": angles, "cos": angles.cos() * factor, "sin": angles.sin() * factor}
    return {key: as_named("position pair", tensor) for key, tensor in made.items()}


def _bias(model: ForeignPasses, n: int) -> Tensor:
    """Return the scores without scale·Q·Kᵀ (head, query, key), 0 where masked."""
    facts = next(facts for facts in model.named.facts if facts.has_bias)
    sites = [f"{facts.path}.{part}" for part in ("queries", "keys", "scores")]
    row = [model.dummy_id] * n
    tensors = model.read([row], [row] if model.task == "seq2seq" else None, sites=sites)
    queries, keys, scores = (tensors[site][0].float() for site in sites)
    bias = scores - scaled_product(queries, keys, facts)  # what remains without scale·Q·Kᵀ
    return torch.where(scores.isfinite(), bias, 0.0)


def _recorded_bias(named: Named) -> Tensor | None:
    for facts, (attention, _) in zip(named.facts, named.attention_points, strict=True):
        if attention is None or attention.queries is None or attention.keys is None:
            continue
        if facts.has_bias and facts.scale is not None:
            keys = attention.keys.repeat_interleave(facts.n_heads // facts.n_groups, dim=1)
            made = attention.queries @ keys.transpose(-1, -2) * facts.scale
            seen = attention.scores > torch.finfo(attention.scores.dtype).min / 2
            return torch.where(seen, attention.scores - made, 0.0)[0]
    return None


def _slopes(bias: Tensor) -> Tensor | None:
    """Return the slope of each head, if its bias falls with the distance in a straight line.

    A constant for each row changes no weight: Bloom's bias grows with the key's position instead.
    """
    n_tokens = bias.shape[-1]
    rows = bias[:, -1, : min(n_tokens, bias.shape[-2])]
    steps = rows.diff(dim=-1)
    slopes = steps.mean(dim=-1)
    scale = float(rows.abs().max()) or 1.0
    is_line = float((steps - slopes[:, None]).abs().max()) <= 1e-3 * scale
    return slopes if is_line and bool((slopes > 0).any()) else None
