"""Passes over the same texts that begin at a layer, from what the layers before it returned.

A head that is switched off changes nothing in the layers below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isclose
from typing import Any

from torch import nn

Forward = Callable[..., Any]


@contextmanager
def recorded(layers: Sequence[nn.Module]) -> Iterator[list[Any]]:
    """Yield a list of what each layer returns in a pass inside the ``with`` block."""
    returned: list[Any] = []

    def keeping(forward: Forward, _: int) -> Forward:
        def keep(*args: Any, **kwargs: Any) -> Any:
            returned.append(forward(*args, **kwargs))
            return returned[-1]

        return keep

    with _replaced(layers, keeping):
        yield returned


@contextmanager
def replayed(layers: Sequence[nn.Module], returned: Sequence[Any]) -> Iterator[None]:
    """Let each layer return what it returned before, inside the ``with`` block."""
    with _replaced(layers, lambda _, number: lambda *_, **__: returned[number]):
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
    try:
        for n_before in range(len(layers)):
            with replayed(layers[:n_before], returned):
                if not isclose(run(), whole, rel_tol=1e-6, abs_tol=1e-9):
                    return False
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return False
    return len(returned) == len(layers)


@contextmanager
def _replaced(
    layers: Sequence[nn.Module], make: Callable[[Forward, int], Forward]
) -> Iterator[None]:
    before = [layer.__dict__.get("forward") for layer in layers]
    for number, layer in enumerate(layers):
        layer.forward = make(layer.forward, number)
    try:
        yield
    finally:
        for layer, forward in zip(layers, before, strict=True):
            if forward is None:
                del layer.__dict__["forward"]
            else:
                layer.forward = forward
