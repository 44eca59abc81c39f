"""Tensors of the size (…, query, key) that are computed one block of queries at a time.

A model file makes its mask, its position bias and, in an older file, its scores for all queries at
once. In a pass that streams, each of these is a tensor without memory (of the device ``meta``) that
knows how its rows are computed. `Deferral` records the operations that the model file applies to
it, and `rows` repeats them for a few queries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from headlight.model.attention.terms import Block
from headlight.model.hooks import Function, FunctionMode

_ROWS = "_headlight_rows"
_SHAPED = {Tensor.view, Tensor.reshape, torch.reshape, Tensor.expand}
_MOVED = {Tensor.to, Tensor.type}


class CannotDefer(RuntimeError):
    """An operation on a deferred tensor that cannot be repeated for a few queries."""


def deferred(like: Tensor, compute: Callable[[int, int], Tensor]) -> Tensor:
    """Return a tensor whose rows are computed later.

    Args:
        like: of the device ``meta``, with the shape (…, query, key) and the dtype.
        compute: the rows (…, stop − start, key) of the queries from ``start`` to ``stop``.
    """
    setattr(like, _ROWS, compute)
    return like


def is_deferred(tensor: object) -> bool:
    """Return True if the rows of a tensor are computed later."""
    return isinstance(tensor, Tensor) and hasattr(tensor, _ROWS)


def rows(tensor: Tensor, at: Block) -> Tensor:
    """Return the rows of some queries of a tensor (…, query, key), deferred or not.

    A tensor with one row for all queries has that row.

    Raises:
        CannotDefer: an operation changes the axis of the queries.
    """
    if not is_deferred(tensor):
        return tensor if tensor.shape[-2] == 1 else tensor[..., at[0] : at[1], :]
    result: Tensor = getattr(tensor, _ROWS)(*at)
    expected = (*tensor.shape[:-2], at[1] - at[0], tensor.shape[-1])
    if result.shape != expected:
        raise CannotDefer(f"rows have the shape {tuple(result.shape)}, and not {expected}")
    return result


def whole(tensor: Tensor) -> Tensor:
    """Return all rows of a tensor."""
    return rows(tensor, (0, tensor.shape[-2])) if is_deferred(tensor) else tensor


class Deferral(FunctionMode):
    """Records the operations on deferred tensors inside the ``with`` block."""

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not any(map(is_deferred, tree_leaves((args, kwargs)))):
            if func is torch.zeros and args and isinstance(args[0], tuple) and len(args[0]) == 4:
                return func((1, 1, 1, 1), **kwargs).expand(args[0])  # a bias without memory
            return func(*args, **kwargs)
        return record(func, args, kwargs)


def record(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the deferred result of a function of tensors of which some are deferred.

    Raises:
        CannotDefer: the function does not give one tensor.
    """
    if func in _MOVED:
        args = tuple(value for value in args if not isinstance(value, torch.device))
        kwargs = {name: value for name, value in kwargs.items() if name != "device"}
    # The functions of the rows are read now: an operation in place gives its tensor new ones.
    bound = tree_map(_bind, (args, kwargs))
    output = func(*tree_map(_to_meta, args), **tree_map(_to_meta, kwargs))
    if not isinstance(output, Tensor):
        if any(isinstance(value, Tensor) for value in tree_leaves(output)):
            raise CannotDefer(f"{_name(func)} gives several tensors")
        return output
    n_queries = max(value.shape[-2] for value in tree_leaves((args, kwargs)) if is_deferred(value))

    def compute(start: int, stop: int) -> Tensor:
        given, named = tree_map(lambda value: _part(value, start, stop, n_queries), bound)
        if func in _SHAPED:
            given = _reshaped(given, stop - start)
        if func is Tensor.__getitem__:
            given = (given[0], _indexed(given[1], n_queries, given[0].ndim))
        result: Tensor = func(*given, **named)
        return result

    return deferred(output, compute)


class _Rows:
    """The function of a deferred tensor's rows, as it was when an operation was recorded."""

    def __init__(self, tensor: Tensor) -> None:
        self.compute: Callable[[int, int], Tensor] = getattr(tensor, _ROWS)


def _bind(value: object) -> object:
    return _Rows(value) if isinstance(value, Tensor) and is_deferred(value) else value


def _to_meta(value: object) -> object:
    return value.to("meta") if isinstance(value, Tensor) and not value.is_meta else value


def _part(value: object, start: int, stop: int, n_queries: int) -> object:
    if isinstance(value, _Rows):
        return value.compute(start, stop)
    if isinstance(value, Tensor) and value.ndim >= 3 and value.shape[-2] == n_queries:
        return value[..., start:stop, :]
    return value


def _reshaped(args: tuple[Any, ...], n_rows: int) -> tuple[Any, ...]:
    """Return the arguments of a reshape with another length of the axis before the last."""
    tensor, *sizes = args
    sizes = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if len(sizes) < 2 or sizes[-2] == -1:
        raise CannotDefer("the length of the axis of the queries is not given")
    sizes[-2] = n_rows
    return (tensor, *sizes)


def _indexed(index: Any, n_queries: int, n_axes: int) -> Any:
    """Return an index of rows in place of one of all queries."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        n_named = sum(part is not None for part in parts) - 1
        parts[at : at + 1] = [slice(None)] * (n_axes - n_named)
    axis = -1
    for number, part in enumerate(parts):
        axis += part is not None
        if axis == n_axes - 2 and part is not None:
            is_all = isinstance(part, slice) and part.indices(n_queries) == (0, n_queries, 1)
            if not is_all:
                raise CannotDefer("a part of the queries is taken")
            parts[number] = slice(None)
        elif axis == n_axes - 1 and part is not None and not isinstance(part, slice):
            raise CannotDefer("one key is taken")
    return tuple(parts)


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", repr(func))
