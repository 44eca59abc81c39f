"""The positional encoding of a foreign model: its tables, rotations, slopes or biases."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.foreign.passes import ForeignPasses
from headlight.model.foreign.sites import Named
from headlight.model.trace import NamedArray


def positional_of(named: Named, recorded: Any) -> str:
    """The scheme: learned, sinusoidal, rotary, alibi, relative or none."""
    if named.is_rotary or _rotary_module(recorded.model) is not None:
        return "rotary"
    for table, start in named.tables.values():
        first: Tensor = table.weight[start]  # type: ignore[index]
        # At position 0 every sine is 0 and every cosine 1.
        is_wave = bool(((first == 0) | (first == 1)).all()) and bool((first == 1).any())
        return "sinusoidal" if is_wave else "learned"
    if named.has_bias:
        bias = _recorded_bias(named)
        return "alibi" if bias is not None and _slopes(bias) is not None else "relative"
    return "none"


def encoding_of(model: ForeignPasses, n: int) -> dict[str, NamedArray]:
    """The encoding of the positions 0 … n−1; see `positional_tables`.

    A relative bias is read from a pass over n tokens: (head, query, key) of the first layer.

    Raises:
        ValueError: the model encodes no positions, or fewer.
    """
    scheme, named = model.config.positional, model.named
    if n > model.config.max_tokens:
        raise ValueError(f"the model has {model.config.max_tokens} positions, not {n}")
    if scheme in ("learned", "sinusoidal"):
        tables = {
            stack: table.weight[start : start + n]  # type: ignore[index]
            for stack, (table, start) in named.tables.items()
        }
        return {
            "encoding" if len(tables) == 1 else f"{stack}.encoding": _array(
                "position d_model", table
            )
            for stack, table in tables.items()
        }
    if scheme == "rotary":
        return _rotation(model, n)
    if scheme in ("alibi", "relative"):
        bias = _bias(model, n)
        slopes = _slopes(bias) if scheme == "alibi" else None
        found = {"bias": _array("head query key", bias)}
        return found if slopes is None else {"slopes": _array("head", slopes), **found}
    raise ValueError("the model encodes no positions that were recognised")


def _array(axes: str, tensor: Tensor) -> NamedArray:
    return NamedArray(tuple(axes.split()), tensor.detach().float().cpu().numpy())


def _rotary_module(model: nn.Module) -> nn.Module | None:
    for module in model.modules():
        if "rotary" in type(module).__name__.lower() and any(
            name.endswith("inv_freq") for name, _ in module.named_buffers(recurse=False)
        ):
            return module
    return None


def _rotation(model: ForeignPasses, n: int) -> dict[str, NamedArray]:
    """The angles by the module's own frequencies, with its scaling of positions and of lengths."""
    module = _rotary_module(model.module)
    if module is None:
        raise ValueError("the frequencies of this model's rotation were not recognised")
    buffers = dict(module.named_buffers(recurse=False))
    name = min(
        (name for name in buffers if name.endswith("inv_freq") and "original" not in name), key=len
    )
    frequencies = buffers[name].float()
    angles = torch.arange(n, device=frequencies.device)[:, None] * frequencies
    scaling = getattr(module, name.replace("inv_freq", "attention_scaling"), 1.0)
    made = {"angles": angles, "cos": angles.cos() * scaling, "sin": angles.sin() * scaling}
    return {key: _array("position pair", tensor) for key, tensor in made.items()}


def _bias(model: ForeignPasses, n: int) -> Tensor:
    """The scores without scale·Q·Kᵀ in a pass over n tokens (head, query, key), 0 where masked."""
    facts = next(one for one in model.named.facts if one.has_bias)
    sites = [f"{facts.path}.{part}" for part in ("queries", "keys", "scores")]
    row = [model.dummy_id] * n
    found = model.read([row], [row] if model.task == "seq2seq" else None, sites=sites)
    queries, keys, scores = (found[site][0].float() for site in sites)
    bias = scores - queries @ keys.transpose(-1, -2) * facts.scale
    return torch.where(scores.isfinite(), bias, 0.0)


def _recorded_bias(named: Named) -> Tensor | None:
    for facts, (attention, _) in zip(named.facts, named.attention_points, strict=True):
        if facts.has_bias and attention.queries is not None and attention.keys is not None:
            keys = attention.keys.repeat_interleave(facts.n_heads // facts.n_groups, dim=1)
            made = attention.queries @ keys.transpose(-1, -2) * facts.scale
            seen = attention.scores > torch.finfo(attention.scores.dtype).min / 2
            return torch.where(seen, attention.scores - made, 0.0)[0]
    return None


def _slopes(bias: Tensor) -> Tensor | None:
    """The slope of each head, if its bias falls with the distance in a straight line.

    A constant for each row changes no weight: Bloom's bias grows with the key's position instead.
    """
    n_tokens = bias.shape[-1]
    rows = bias[:, -1, : min(n_tokens, bias.shape[-2])]
    steps = rows.diff(dim=-1)
    slopes = steps.mean(dim=-1)
    scale = float(rows.abs().max()) or 1.0
    is_line = float((steps - slopes[:, None]).abs().max()) <= 1e-3 * scale
    return slopes if is_line and bool((slopes > 0).any()) else None
