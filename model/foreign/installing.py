"""Let the named tensors of a model pass their hook points, and its layers be stepped over.

Everything is installed once, when a model is loaded, and consults ContextVars, so that passes in
other threads never see each other's tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.cancellation import check
from headlight.model.foreign.deferred import deferred
from headlight.model.foreign.operations import watch_operations
from headlight.model.foreign.points import is_streaming, observer, set_points, state
from headlight.model.foreign.sites import Hook, Named, NamedLayer
from headlight.model.foreign.writes import gains
from headlight.model.hooks import is_hooked

_stepping: ContextVar[Tensor | None] = ContextVar("headlight_foreign_stepping", default=None)


def _passed(hook: Hook, tensor: Tensor, n_rows: int) -> Tensor:
    """Return the tensor, or what the edits of the point make of it.

    The point sees a copy: a model file may write to its own tensor later, as Falcon's adds
    what attention wrote to what the feed-forward network returned.
    """
    if hook.point.axes[0] == "position":  # one table for all rows
        table = tensor.reshape(-1, *tensor.shape[-2:])[0].clone()
        edited = hook.point(table)
        return tensor if edited is table else edited.expand_as(tensor).clone()
    if hook.columns is not None:
        return _passed_columns(hook, tensor)
    factor = None if hook.factor is None else hook.factor.to(tensor.device)
    is_flat = tensor.ndim == len(hook.point.axes) - 1
    seen = tensor.unflatten(0, (n_rows, -1)) if is_flat else tensor
    seen = seen.clone() if factor is None else (seen * factor).to(tensor.dtype)
    edited = hook.point(seen)
    if edited is seen:
        return tensor
    edited = edited.reshape(tensor.shape)
    return (edited.clone() if factor is None else edited / factor).to(tensor.dtype)


def _passed_gain(hook: Hook, given: Tensor, made: Tensor) -> Tensor:
    """Return what a norm made, or its input times what the edits make of the gain."""
    assert hook.gain is not None
    seen = gains(given, made, hook.gain.to(made.device))
    edited = hook.point(seen)
    return made if edited is seen else (given * edited).to(made.dtype)


def _passed_columns(hook: Hook, tensor: Tensor) -> Tensor:
    assert hook.columns is not None
    by_token = tensor.transpose(1, 2) if hook.is_by_head else tensor
    flat = by_token.flatten(2)
    columns = hook.columns.to(flat.device)
    seen = flat[..., columns].transpose(1, 2)  # a copy
    edited = hook.point(seen)
    if edited is seen:
        return tensor
    changed = flat.clone()
    changed[..., columns] = edited.transpose(1, 2).to(flat.dtype)
    changed = changed.reshape(by_token.shape)
    return changed.transpose(1, 2) if hook.is_by_head else changed


def install(named: Named) -> None:
    """Install the hooks, the points of the attentions, and the steps over the layers."""
    by_module: dict[int, tuple[nn.Module, list[Hook]]] = {}
    for hook in named.hooks:
        by_module.setdefault(id(hook.call.module), (hook.call.module, []))[1].append(hook)
    for module, hooks in by_module.values():
        _install_hooks(module, hooks)
    older: dict[int, nn.Module] = {}
    for attention, points in named.attention_points:
        assert attention is not None  # the self-check forgets it later
        set_points(attention.call.module, points)
        if not attention.has_interface:
            older[id(attention.call.module)] = attention.call.module
    for module in older.values():
        watch_operations(module)
    for attention, _ in named.attention_points:
        if attention is not None:
            _defer_bias(attention.call.module)
    stepped: set[int] = set()
    for layer in named.layers:
        if layer.before is not None and id(layer.call.module) not in stepped:
            stepped.add(id(layer.call.module))
            _step_over(layer)


def _install_hooks(module: nn.Module, hooks: Sequence[Hook]) -> None:
    entering = [hook for hook in hooks if not hook.is_output]
    leaving = [hook for hook in hooks if hook.is_output]
    entered, left = ([hook.point for hook in each] for each in (entering, leaving))

    def enter(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not any(map(is_hooked, entered)) or observer.get() is not None:
            return None
        changed = False
        listed, named = list(args), dict(kwargs)
        for hook in _of_this_call(entering, (id(module), "in")):
            assert hook.slot is not None
            held: Any = listed if isinstance(hook.slot, int) else named
            tensor = held[hook.slot]
            edited = _passed(hook, tensor, _n_rows())
            changed |= edited is not tensor
            held[hook.slot] = edited
        return (tuple(listed), named) if changed else None

    def leave(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        if not any(map(is_hooked, left)) or observer.get() is not None:
            return None
        is_tensor = isinstance(output, Tensor)
        parts = [output] if is_tensor else list(output)
        changed = False
        for hook in _of_this_call(leaving, (id(module), "out")):
            place = 0 if hook.slot is None else hook.slot
            assert isinstance(place, int)
            if hook.gain is None:
                edited = _passed(hook, parts[place], _n_rows())
            else:
                given = (*args, *kwargs.values())
                first = next(each for each in given if isinstance(each, Tensor))
                edited = _passed_gain(hook, first, parts[place])
            changed |= edited is not parts[place]
            parts[place] = edited
        if not changed:
            return None
        return parts[0] if is_tensor else type(output)(parts)

    if entering:
        module.register_forward_pre_hook(enter, with_kwargs=True)
    if leaving:
        module.register_forward_hook(leave, with_kwargs=True)


def _of_this_call(hooks: Sequence[Hook], key: tuple[int, str]) -> Iterator[Hook]:
    """Yield the hooks of this call whose points are watched; a module called once has no number."""
    number = 0
    if len({hook.call.number for hook in hooks}) > 1:
        current = state.get()
        number = hooks[0].call.number + (current.next_call(key) if current is not None else 0)
    for hook in hooks:
        is_this = hook.call.number == number or len(hooks) == 1
        if is_this and is_hooked(hook.point):
            yield hook


def _n_rows() -> int:
    current = state.get()
    return 1 if current is None else current.n_rows


# --- layers ---------------------------------------------------------------------------------------


@contextmanager
def stepping_over(stream: Tensor) -> Iterator[None]:
    """Let every layer return this stream instead of computing, inside the ``with`` block."""
    token = _stepping.set(stream)
    try:
        yield
    finally:
        _stepping.reset(token)


def _step_over(layer: NamedLayer) -> None:
    """Let a layer be stepped over, and let a pass be cancelled before it."""
    original: Callable[..., Any] = layer.call.module.forward
    n_outputs, slot = layer.call.n_outputs, layer.call.slots[0]

    def forward(*args: Any, **kwargs: Any) -> Any:
        stream = _stepping.get()
        if stream is None:
            check()
            return original(*args, **kwargs)
        if isinstance(slot, str):
            given = kwargs.get(slot)
        else:
            given = args[slot] if slot < len(args) else None
        if given is not None and given.shape != stream.shape:
            stream = given  # of the other stack
        return stream if n_outputs is None else (stream, *[None] * (n_outputs - 1))

    layer.call.module.forward = forward


# --- masks and biases -----------------------------------------------------------------------------


def attention_mask(make: Callable[..., Tensor | None], **sizes: Any) -> Tensor | None:
    """Return the mask of a model (batch, 1, query, key), deferred in a pass that streams.

    Args:
        make: of Transformers' mask interface, for eager attention.
        sizes: its arguments.
    """
    if not is_streaming():
        return make(**sizes)
    start, n_queries = sizes.get("q_offset", 0), sizes["q_length"]

    def some(first: int, last: int) -> Any:
        return make(**sizes | {"q_length": last - first, "q_offset": start + first})

    row = some(0, 1)
    if row is None:  # nothing is masked
        return None
    shape = (*row.shape[:2], n_queries, row.shape[-1])
    return deferred(torch.empty(shape, dtype=row.dtype, device="meta"), some)


def _defer_bias(module: nn.Module) -> None:
    """Let a relative bias (1, head, query, key), as that of T5, be computed by rows."""
    original = getattr(module, "compute_bias", None)
    if original is None or "past_seen_tokens" not in inspect.signature(original).parameters:
        return

    def compute_bias(
        query_length: int, key_length: int, device: Any = None, past_seen_tokens: int = 0
    ) -> Tensor:
        if not is_streaming():
            bias: Tensor = original(query_length, key_length, device, past_seen_tokens)
            return bias

        def some(first: int, last: int) -> Any:
            return original(last - first, key_length, device, past_seen_tokens + first)

        row = some(0, 1)
        shape = (*row.shape[:2], query_length, key_length)
        return deferred(torch.empty(shape, dtype=row.dtype, device="meta"), some)

    module.compute_bias = compute_bias  # type: ignore[assignment]  # no tensor, but a method
