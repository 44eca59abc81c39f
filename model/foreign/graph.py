"""The norms and matrices of a foreign model's graph, proved by `headlight.model.circuits.parts`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headlight.model.foreign.matrices import input_matrix, output_weights
from headlight.model.foreign.passes import ForeignPasses
from headlight.model.weights import InputMatrix, NormParts, Weights

_LETTERS = {"queries": "Q", "keys": "K", "values": "V"}
_EPSILONS = ("eps", "variance_epsilon", "epsilon")


def graph_weights(model: ForeignPasses) -> Weights:
    """Return the norms and matrices of a foreign model, as far as they are known."""
    named = model.named

    def norm(site: str) -> NormParts | None:
        module = _norm_module(model, site)
        return None if module is None else norm_parts(module, named.d_model)

    def inputs(site: str) -> InputMatrix | None:
        path, _, part = site.rpartition(".")
        matrix = named.matrices.get(f"{path}.W_{_LETTERS[part]}")
        return None if matrix is None else input_matrix(matrix, norm_parts)

    def outputs(path: str) -> Tensor | None:
        try:
            return output_weights(named, path)
        except KeyError:
            return None

    carries = {
        path: step.carry for step in named.steps if step.carry is not None for path in step.paths
    }
    return Weights(norm, inputs, outputs, carries)


def _norm_module(model: ForeignPasses, site: str) -> nn.Module | None:
    """Return the module of a norm; that at the end of a stack is outside its layers."""
    named = model.named
    if (point := named.points.get(site)) is not None:
        return next(hook.call.module for hook in named.hooks if hook.point is point)
    stack, _, last = site.partition(".")
    if last != "norm":
        return None
    layers = [layer.call.module for layer in named.layers if layer.stack == stack]
    inside = {id(module) for layer in layers for module in layer.modules()}
    container = next(
        (
            module
            for module in model.module.modules()
            if isinstance(module, nn.ModuleList) is False
            and any(
                isinstance(child, nn.ModuleList) and any(each is layers[0] for each in child)
                for child in module.children()
            )
        ),
        None,
    )
    if container is None:
        return None
    norms = [
        child
        for child in container.children()
        if id(child) not in inside and "norm" in type(child).__name__.lower()
    ]
    return norms[-1] if norms else None


def norm_parts(module: nn.Module, d_model: int) -> NormParts | None:
    """Return the formula of a norm, found by trying which gives its numbers; None: no other."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.shape != (d_model,):
        return None
    epsilon = next(
        (float(getattr(module, name)) for name in _EPSILONS if hasattr(module, name)), None
    )
    if epsilon is None:
        return None
    shift = getattr(module, "bias", None)
    shift = shift.detach() if isinstance(shift, Tensor) else None
    x = torch.linspace(-1.5, 2.0, 3 * d_model, device=weight.device, dtype=weight.dtype)
    x = x.view(3, d_model).sin() * 2 + 0.3
    limit = 1e-5 if weight.dtype in (torch.float32, torch.float64) else 4e-2
    with torch.no_grad():
        expected = type(module).forward(module, x)
        for scale in (weight.detach(), 1 + weight.detach()):
            for is_centred in (False, True):
                parts = NormParts(scale, shift, epsilon, is_centred)
                # A trained scale may be a hundred: rounding is to the size of each feature.
                sizes = expected.abs() + 3 * scale.abs()
                if bool(((parts(x) - expected).abs() <= limit * sizes).all()):
                    return parts
    return None
