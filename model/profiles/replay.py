"""Passes over the same texts that begin at a layer, from what the layers before it returned.

A head that is switched off changes nothing in the layers below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import isclose
from typing import Any

from torch import nn


@contextmanager
def recorded(layers: Sequence[nn.Module]) -> Iterator[list[Any]]:
    """Yield a list of what each layer returns in a pass inside the ``with`` block."""
    returned: list[Any] = []

    def keeping(forward: Callable[..., Any]) -> Callable[..., Any]:
        def keep(*args: Any, **kwargs: Any) -> Any:
            returned.append(forward(*args, **kwargs))
            return returned[-1]

        return keep

    with ExitStack() as stack:
        for layer in layers:
            stack.enter_context(_replaced(layer, keeping(layer.forward)))
        yield returned


@contextmanager
def replayed(layers: Sequence[nn.Module], returned: Sequence[Any]) -> Iterator[None]:
    """Let each layer return what it returned before, inside the ``with`` block."""

    def again(output: Any) -> Callable[..., Any]:
        return lambda *_, **__: output

    with ExitStack() as stack:
        for layer, output in zip(layers, returned, strict=True):
            stack.enter_context(_replaced(layer, again(output)))
        yield


def can_replay(layers: Sequence[nn.Module], run: Callable[[], float]) -> bool:
    """Return True if `run`, a pass, gives the same number from whichever layer it begins.

    It does not if layers pass on more than they return. Layers that share a module are not tried:
    the number of a call tells which layer it is.
    """
    if len(set(layers)) < len(layers):
        return False
    with recorded(layers) as returned:
        whole = run()
    if len(returned) != len(layers):
        return False
    for n_before in range(1, len(layers)):
        try:
            with replayed(layers[:n_before], returned[:n_before]):
                if not isclose(run(), whole, rel_tol=1e-6, abs_tol=1e-9):
                    return False
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            return False
    return True


@contextmanager
def _replaced(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    before = module.__dict__.get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if before is None:
            del module.__dict__["forward"]
        else:
            module.forward = before
