"""Rotations that depend on the length of the text: LongRoPE, and RoPE with a dynamic base.

Transformers keeps the speeds of the longest row of a pass in the module. The next pass reads them,
a pass in another thread too, and so do the shorter rows of the same pass. Here every call of such a
module works on a copy of its first state, so a rotation depends on the text that it is read for.

LongRoPE has one switch: texts up to ``original_max_position_embeddings`` have short factors,
longer ones long factors (arXiv 2402.13753). A dynamic base grows with each token beyond
``max_position_embeddings``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Switch:
    """The number of tokens beyond which a rotation is another one.

    ``is_growing``: each length beyond it has a rotation that no other length has.
    """

    n_tokens: int
    is_growing: bool

    def separates(self, first: int, second: int) -> bool:
        """Return True if texts of two lengths are rotated differently."""
        longest = max(first, second)
        if longest <= self.n_tokens or first == second:
            return False
        return self.is_growing or min(first, second) <= self.n_tokens


def switches_of(model: nn.Module) -> tuple[Switch, ...]:
    """Return the switches of all rotations of a model of Transformers."""
    switches = set()
    for module in _rotary_modules(model):
        for layer_type, kind in _kinds(module):
            if "dynamic" in kind:
                switches.add(Switch(int(module.original_max_seq_len), is_growing=True))  # type: ignore[arg-type]
            elif kind == "longrope":
                switches.add(Switch(_longrope_length(module, layer_type), is_growing=False))
    return tuple(sorted(switches, key=lambda switch: switch.n_tokens))


def separates(switches: Iterable[Switch], lengths: Iterable[int]) -> bool:
    """Return True if texts of these lengths cannot share a pass, or a cache."""
    shortest, *_, longest = sorted([*lengths] * 2)
    return any(switch.separates(shortest, longest) for switch in switches)


def make_stateless(model: nn.Module) -> None:
    """Let every call of a rotation that depends on the length start from the module's first state.

    Args:
        model: of Transformers, on its device, before its first pass.
    """
    for module in _rotary_modules(model):
        if any("dynamic" in kind or kind == "longrope" for _, kind in _kinds(module)):
            module.forward = partial(_call_copy, module)


def speeds_at(module: nn.Module, n_tokens: int) -> Mapping[str, tuple[Tensor, float]]:
    """Return the speeds and the factor of a rotary module for a text of that length, by buffer.

    The last position is enough for the module: it reads the length from the greatest position.
    """
    made = _first_state(module)
    device = next(module.buffers()).device
    position = torch.tensor([[n_tokens - 1]], device=device)
    hidden = torch.ones(1, 1, 1, device=device)
    speeds = {}
    for layer_type, _ in _kinds(module):
        given = {} if layer_type is None else {"layer_type": layer_type}
        prefix = "" if layer_type is None else f"{layer_type}_"
        cos, sin = type(module).forward(made, hidden, position, **given)
        factor = float((cos.double() ** 2 + sin.double() ** 2).mean().sqrt())
        speeds[f"{prefix}inv_freq"] = getattr(made, f"{prefix}inv_freq").float(), factor
    return speeds


def distance_from_library(model: nn.Module, switches: Iterable[Switch]) -> float:
    """Measure how far rotations are from those of new modules, on both sides of every switch.

    The long side is read first, so a state that is kept would show on the short one. One position
    is rotated at each length: a switch at 100,000 tokens costs no more than one at 100.
    """
    far = 0.0
    lengths = [
        n for each in switches for n in (each.n_tokens + 2, each.n_tokens + 1, each.n_tokens)
    ]
    for module in _rotary_modules(model):
        device = next(module.buffers()).device
        hidden = torch.ones(1, 1, 1, device=device)
        for n_tokens in lengths:
            position = torch.tensor([[n_tokens - 1]], device=device)
            for layer_type, _ in _kinds(module):
                given = {} if layer_type is None else {"layer_type": layer_type}
                fresh = type(module)(module.config).to(device)
                expected = fresh(hidden, position, **given)
                made = module(hidden, position, **given)
                for each, other in zip(made, expected, strict=True):
                    far = max(far, float((each.double() - other.double()).abs().max()))
    return far


def _call_copy(module: nn.Module, *arguments: Any, **options: Any) -> Any:
    return type(module).forward(_first_state(module), *arguments, **options)


def _first_state(module: nn.Module) -> nn.Module:
    """Copy a module with its buffers, which its pass overwrites."""
    made = copy(module)
    made.__dict__.pop("forward", None)
    made.__dict__["_buffers"] = {
        name: None if buffer is None else buffer.clone() for name, buffer in module._buffers.items()
    }
    return made


def _rotary_modules(model: nn.Module) -> list[nn.Module]:
    return [each for each in model.modules() if hasattr(each, "rope_type")]


def _kinds(module: nn.Module) -> list[tuple[str | None, str]]:
    """Return the layer types with a rotation each, and its ``rope_type``."""
    kinds: Any = module.rope_type
    if isinstance(kinds, dict):
        return [(name, kind) for name, kind in kinds.items() if isinstance(kind, str)]
    return [(None, kinds)] if isinstance(kinds, str) else []


def _longrope_length(module: nn.Module, layer_type: str | None) -> int:
    config: Any = module.config
    parameters = config.rope_parameters
    if layer_type is not None:
        parameters = parameters[layer_type]
    return int(parameters["original_max_position_embeddings"])
