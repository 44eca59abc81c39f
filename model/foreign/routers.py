"""The routers of a mixture of experts: the logits, the probabilities and the choices of experts.

A router is the module that picks the greatest of as many numbers per token as it has experts
(``topk``). A `RouterTap` watches the operations in it. An expert is switched off by −∞ both at its
logit and where the choice is made: a router may add a correction to its scores in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headlight.model.foreign.attention import SOFTMAXES
from headlight.model.foreign.points import observer, state
from headlight.model.foreign.probe import TOP_KS, Call
from headlight.model.foreign.sites import Hook, Named, NamedLayer, Router
from headlight.model.hooks import Function, FunctionMode, is_any_hooked, is_hooked

_GATES = {*SOFTMAXES, torch.sigmoid, Tensor.sigmoid, F.sigmoid}
_LINEARS = {F.linear, torch.matmul, Tensor.matmul, Tensor.__matmul__}


def find_router(layer: NamedLayer) -> Call | None:
    """Return the call of a layer's router: the last to pick from a number per expert."""
    if layer.before is None:
        return None
    calls = [call for call in layer.inner if _choices(layer, call)]
    return calls[-1] if calls else None


def _choices(layer: NamedLayer, call: Call) -> list[tuple[tuple[int, ...], int]]:
    """Return the choices that a call makes for each token, but those among tokens."""
    assert layer.before is not None
    n_rows, n_tokens = layer.before.shape[:2]
    return [
        (shape, count)
        for shape, count in call.choices
        if math.prod(shape[:-1]) == n_rows * n_tokens and shape[-1] != n_tokens
    ]


def name_router(named: Named, layer: NamedLayer, call: Call) -> None:
    """Name the sites of a layer's router and of its experts."""
    assert layer.before is not None
    n_tokens = layer.before.shape[0] * layer.before.shape[1]
    shape, top_k = _choices(layer, call)[-1]
    n_experts, path = shape[-1], f"{layer.path}.experts"
    axes = "batch query expert"
    logits = named.point(f"{path}.router_logits", axes, expert=n_experts)
    probs = named.point(f"{path}.router_probs", axes, expert=n_experts)
    chosen = "batch query top_k"
    indices = named.point(f"{path}.expert_indices", chosen, top_k=top_k)
    places = [
        place
        for place, out in zip(call.places, call.outputs, strict=True)
        if place is not None
        and out.is_floating_point()
        and out.shape[-1] == top_k
        and out.numel() == n_tokens * top_k
    ]
    weights = None
    if places and top_k != n_experts:
        weights = named.point(f"{path}.expert_weights", chosen, top_k=top_k)
    else:
        named.omitted[f"{path}.expert_weights"] = "the router does not return them"
    named.experts[path] = (n_experts, top_k)
    named.routers.append(
        Router(
            call=call,
            n_experts=n_experts,
            top_k=top_k,
            logits=logits,
            probs=probs,
            indices=indices,
            weights=weights,
            weights_at=places[0] if weights is not None else None,
        )
    )
    block = [
        outer
        for outer in layer.inner
        if (call.is_within(outer) or outer is call)
        and outer.outputs
        and outer.outputs[0].numel() == layer.before.numel()
        and outer.outputs[0].is_floating_point()
    ]
    if block:
        output = named.point(f"{path}.output", "batch query d_model", d_model=named.d_model)
        named.hooks.append(Hook(block[-1], block[-1].places[0], True, output))


def install_routers(named: Named) -> None:
    """Let the operations of every router pass its points."""
    for router in named.routers:
        _install(router)


def _install(router: Router) -> None:
    module: nn.Module = router.call.module
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        is_idle = not is_any_hooked() or observer.get() is not None
        if is_idle or not any(map(is_hooked, router.points)):
            return original(*args, **kwargs)
        with RouterTap(router) as tap:
            output = original(*args, **kwargs)
        tap.finish()
        if router.weights is None or not is_hooked(router.weights):
            return output
        parts = list(output)
        assert router.weights_at is not None
        held = parts[router.weights_at]
        seen = tap.by_row(held)
        edited = router.weights(seen)
        if edited is not seen:
            parts[router.weights_at] = edited.reshape(held.shape).to(held.dtype)
            return type(output)(parts)
        return output

    module.forward = forward


class RouterTap(FunctionMode):
    """Passes the logits, probabilities and choices of one router through their points."""

    def __init__(self, router: Router) -> None:
        super().__init__()
        self.router = router
        self.logits: Tensor | None = None
        self.probs: Tensor | None = None
        self.indices: Tensor | None = None
        self.is_off: Tensor | None = None

    def by_row(self, tensor: Tensor) -> Tensor:
        """Return (batch·query, n) as (batch, query, n)."""
        current = state.get()
        n_rows = 1 if current is None else current.n_rows
        return tensor.reshape(n_rows, -1, tensor.shape[-1])

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func in TOP_KS and self._has_experts(args[0]):
            return self._choose(func, args, kwargs)
        result = func(*args, **kwargs)
        if func in _LINEARS and self.logits is None and self._has_experts(result):
            seen = self.by_row(result).float()
            edited = self.router.logits(seen)
            self.logits = edited
            if edited is not seen:
                self.is_off = edited.reshape(result.shape) == -math.inf
                return edited.reshape(result.shape).to(result.dtype)
        is_gate = func in _GATES and self.probs is None and self.logits is not None
        if is_gate and self._has_experts(result):
            seen = self.by_row(result).float()
            self.probs = self.router.probs(seen)
            if self.probs is not seen:
                return self.probs.reshape(result.shape).to(result.dtype)
        return result

    def _has_experts(self, tensor: object) -> bool:
        return (
            isinstance(tensor, Tensor)
            and tensor.is_floating_point()
            and tensor.ndim in (2, 3)
            and tensor.shape[-1] == self.router.n_experts
        )

    def _choose(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        scores = args[0]
        if self.is_off is not None and self.is_off.numel() == scores.numel():
            scores = scores.masked_fill(self.is_off.reshape(scores.shape), -math.inf)
        result = func(scores, *args[1:], **kwargs)
        if result.indices.shape[-1] == self.router.top_k:
            self.indices = result.indices
        return result

    def finish(self) -> None:
        """Pass what the module has computed by its end through the points."""
        router = self.router
        if self.indices is not None:
            router.indices(self.by_row(self.indices))
        if self.probs is None and self.logits is not None:  # it weighs only the chosen experts
            router.probs(self.logits.softmax(dim=-1))
