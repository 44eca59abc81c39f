"""Watch the softmax of each attention while the model file's own code computes it.

A model file with the attention interface calls `attend`, which runs that file's own
``eager_attention_forward`` inside a `SoftmaxTap`: the numbers are those of Transformers' own eager
attention, and the tap sees the scores and the weights. If an attention is not watched and its
formula has no further terms, the fused kernel computes it. The files that have their attention in
a ``forward`` are watched by `operations`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from headlight.model.cancellation import check
from headlight.model.foreign.blockwise_attention import ObservedBlocks, by_formula
from headlight.model.foreign.deferred import Deferral, rows, whole
from headlight.model.hooks import Function, FunctionMode, HookPoint, is_hooked
from headlight.model.observation import observe_whole

NAME = "headlight"
"""The name of `attend` in the attention interface of Transformers."""

SOFTMAXES = {torch.softmax, Tensor.softmax, F.softmax, torch.special.softmax}
_MATMULS = {torch.matmul, Tensor.matmul, Tensor.__matmul__}
_IN_PLACE: dict[Function, Function] = {
    torch.mul: Tensor.mul_,
    Tensor.mul: Tensor.mul_,
    torch.div: Tensor.div_,
    Tensor.div: Tensor.div_,
    torch.add: Tensor.add_,
    Tensor.add: Tensor.add_,
    torch.tanh: Tensor.tanh_,
    Tensor.tanh: Tensor.tanh_,
}
"""The steps from Q·Kᵀ to the scores, and the same step that writes its result over its input."""


@dataclass
class PassState:
    """The state of one pass: its rows, the calls of each module, attentions without scaling.

    ``is_streamed``: attentions whose weights are not asked for whole run in blocks of queries.
    ``start`` is the position of the first query.
    """

    n_rows: int = 1
    unscaled: frozenset[str] = frozenset()
    is_streamed: bool = False
    start: int = 0
    n_calls: dict[Hashable, int] = field(default_factory=dict)

    def next_call(self, key: Hashable) -> int:
        """The number of this call of a module in this pass, from 0."""
        number = self.n_calls.get(key, 0)
        self.n_calls[key] = number + 1
        return number


state: ContextVar[PassState | None] = ContextVar("headlight_foreign_pass", default=None)
observer: ContextVar[Any] = ContextVar("headlight_foreign_observer", default=None)


@contextmanager
def new_pass(
    n_rows: int = 1,
    unscaled: frozenset[str] = frozenset(),
    *,
    is_streamed: bool = False,
    start: int = 0,
) -> Iterator[PassState]:
    """Begin a pass; every call of the model happens inside the ``with`` block."""
    begun = PassState(n_rows, unscaled, is_streamed, start)
    token = state.set(begun)
    try:
        with ExitStack() as stack:
            if is_streamed:
                stack.enter_context(Deferral())
            yield begun
    finally:
        state.reset(token)


class Order(NamedTuple):
    """The numbers of an attention's operations among the products and softmaxes of a ``forward``.

    ``match`` is the product Q·Kᵀ, None if none has the size of the scores; ``average`` the product
    that is the context.
    """

    match: int | None
    softmax: int
    average: int


@dataclass
class AttentionPoints:
    """The hook points of one call of one attention; None: the model has no such tensor.

    ``scale`` is the factor of Q·Kᵀ, if the scores follow from it; None: it is not known. ``order``
    finds the attention among the operations of an older file. ``observed`` are the points of the
    numbers of rows, the maps and the rows, by name (`observation.OBSERVED_AXES`). ``has_formula``:
    blocks follow from the terms of the scores; otherwise the model file computes each block.
    ``is_in_place``: every step of the model file may write over Q·Kᵀ.
    """

    path: str
    n_heads: int
    n_groups: int
    is_fused: bool
    queries: HookPoint | None
    keys: HookPoint | None
    values: HookPoint | None
    scores: HookPoint
    weights: HookPoint
    context: HookPoint
    sink: HookPoint | None = None
    bias: HookPoint | None = None
    scale: float | None = None
    order: Order | None = None
    observed: dict[str, HookPoint] = field(default_factory=dict)
    has_formula: bool = False
    is_in_place: bool = False

    @property
    def has_interface(self) -> bool:
        """Whether the model file hands the attention to the interface."""
        return self.order is None

    @property
    def all(self) -> list[HookPoint]:
        """The points that the model has."""
        found = (self.queries, self.keys, self.values, self.scores, self.weights, self.sink)
        points = (*found, self.bias, self.context, *self.observed.values())
        return [point for point in points if point is not None]

    @property
    def weight_points(self) -> list[HookPoint]:
        """The points that need the weights, or see them."""
        found = (self.weights, self.sink, *self.observed.values())
        return [point for point in found if point is not None]

    @property
    def is_streamed(self) -> bool:
        """Whether the current pass needs neither scores nor weights of this attention whole."""
        current = state.get()
        whole = (self.scores, self.weights, self.sink, self.bias)
        return (
            current is not None
            and current.is_streamed
            and not any(point is not None and is_hooked(point) for point in whole)
        )

    @property
    def observed_names(self) -> list[str]:
        """The names of the numbers of rows, the maps and the rows that the pass observes."""
        return [name for name, point in self.observed.items() if is_hooked(point)]

    def observe(self, weights: Tensor) -> None:
        """Pass what is observed of the weights (batch, head, query, key) through its points."""
        if names := self.observed_names:
            check()
            found = observe_whole(weights, None, names, has_sink=self.sink is not None)
            current = state.get()
            if current is not None and current.start + weights.shape[-2] > weights.shape[-1]:
                found = {  # a sliding cache has lost the first key
                    name: torch.zeros_like(each) if name == "first_token" else each
                    for name, each in found.items()
                }
            self.report(found)

    def report(self, found: Mapping[str, Tensor]) -> None:
        """Pass what was observed through its points."""
        for name, tensor in found.items():
            self.observed[name](tensor)

    def blocks(self, queries: Tensor, n_keys: int) -> ObservedBlocks:
        """The blocks of queries (…, query, d_head), in which the model file computes weights."""
        n_queries, n_rows = queries.shape[-2], math.prod(queries.shape[:-2]) // self.n_heads
        return ObservedBlocks(
            self.observed_names,
            (n_rows, self.n_heads, n_queries, n_keys),
            queries.device,
            has_sink=self.sink is not None,
        )

    # --- tensors on their way --------------------------------------------------------------------

    def shared(self, point: HookPoint | None, tensor: Tensor) -> Tensor:
        """Pass keys or values of groups through a point that has them for every head."""
        if point is None or not is_hooked(point):
            return tensor
        whole = self._by_head(tensor)
        sharers = self.n_heads // whole.shape[1]
        seen = whole.repeat_interleave(sharers, dim=1) if sharers > 1 else whole
        found = point(seen)
        return tensor if found is seen else found[:, ::sharers].reshape(tensor.shape)

    def through(self, point: HookPoint | None, tensor: Tensor) -> Tensor:
        """Pass a tensor with or without separate axes of batch and head through a point."""
        if point is None or not is_hooked(point):
            return tensor
        seen = self._by_head(tensor)
        found = point(seen)
        return tensor if found is seen else found.reshape(tensor.shape).to(tensor.dtype)

    def _by_head(self, tensor: Tensor) -> Tensor:
        if tensor.ndim == 4:
            return tensor
        n_heads = self.n_heads if tensor.shape[0] % self.n_heads == 0 else 1
        by_row: Tensor = tensor.unflatten(0, (-1, n_heads))
        return by_row

    def biased(self, scores: Tensor, product: Callable[[], Tensor]) -> Tensor:
        """Pass what is added to scale·Q·Kᵀ, capped, through its point; `product` is the latter."""
        if self.bias is None or not is_hooked(self.bias):
            return scores
        by_head = self._by_head(scores)
        seen = by_head > torch.finfo(scores.dtype).min / 2
        made = product().reshape(by_head.shape)
        bias = torch.where(seen, by_head.float() - made, 0.0)
        found = self.bias(bias)
        if found is bias:
            return scores
        changed = torch.where(seen, made + found, by_head)
        return changed.reshape(scores.shape).to(scores.dtype)

    def scored(self, scores: Tensor) -> Tensor:
        """Pass scores through their point, with −∞ at masked keys."""
        if not is_hooked(self.scores):
            return scores
        floor = torch.finfo(scores.dtype).min / 2
        seen = self._by_head(scores).float()
        seen = seen.masked_fill(seen <= floor, -math.inf)
        found = self.scores(seen)
        if found is seen:
            return scores
        # A row that sees nothing stays finite, as the model file has it.
        lowest = torch.finfo(scores.dtype).min
        return found.clamp(min=lowest).reshape(scores.shape).to(scores.dtype)

    def softened(
        self,
        softmax: Callable[..., Tensor],
        scores: Tensor,
        n_keys: int,
        *args: Any,
        blocks: ObservedBlocks | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """The softmax of scores, passed through the points of the weights and of the sink.

        In a lower precision the points see the softmax of the same scores in float32. The weights
        of a block of queries are observed.
        """
        weights = softmax(scores, *args, **kwargs)
        if not any(map(is_hooked, self.weight_points)):
            return weights
        exact = weights if weights.dtype == torch.float32 else scores.float().softmax(dim=-1)
        by_head = self._by_head(exact)
        n_tokens = by_head.shape[-1]
        if blocks is not None:
            blocks.add(by_head[..., :n_keys])
            return weights
        if self.sink is not None and n_tokens > n_keys:
            self.sink(by_head[..., -1])
            by_head = by_head[..., :n_keys]
        found = self.weights(by_head)
        self.observe(found)
        if found is by_head:
            return weights
        if n_tokens > n_keys:
            found = torch.cat([found, self._by_head(exact)[..., n_keys:]], dim=-1)
        return found.reshape(weights.shape).to(weights.dtype)


def points_of(module: nn.Module) -> AttentionPoints | None:
    """The points of this call of an attention."""
    calls: list[AttentionPoints] | None = module.__dict__.get("_headlight_points")
    if not calls:
        return None
    current = state.get()
    number = current.next_call(id(module)) if current is not None else 0
    return calls[min(number, len(calls) - 1)]


def set_points(module: nn.Module, points: AttentionPoints) -> None:
    """Add the points of a module's next call."""
    module.__dict__.setdefault("_headlight_points", []).append(points)


# --- files with the attention interface -----------------------------------------------------------


@cache
def own_eager(kind: type[nn.Module]) -> Callable[..., tuple[Tensor, Tensor]] | None:
    """``eager_attention_forward`` of the file that a class of attention is written in."""
    for base in kind.__mro__:
        forward = base.__dict__.get("forward")
        if forward is None:
            continue
        names: dict[str, Any] = getattr(inspect.unwrap(forward), "__globals__", {})
        eager: Callable[..., tuple[Tensor, Tensor]] | None = names.get("eager_attention_forward")
        if eager is not None:
            return eager
    return None


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """The attention of one module, by its file's own code; see the attention interface."""
    eager = own_eager(type(module))  # type: ignore[arg-type]  # a class can be hashed
    if eager is None:
        raise NotImplementedError(f"the file of {type(module).__name__} has no eager attention")
    watching = observer.get()
    if watching is not None:
        found: tuple[Tensor, Tensor] = watching.attention(
            module, eager, (query, key, value, attention_mask), kwargs
        )
        return found
    points = points_of(module)
    if points is None:
        return eager(module, query, key, value, attention_mask, **kwargs)
    query = points.through(points.queries, query)
    key, value = points.shared(points.keys, key), points.shared(points.values, value)
    current = state.get()
    if current is not None and points.path in current.unscaled:
        kwargs["scaling"] = 1.0
    if current is not None and current.is_streamed:
        if points.is_streamed:
            out = _streamed(points, module, eager, (query, key, value, attention_mask), kwargs)
            return _context(points, out), None
        attention_mask, kwargs = tree_map(_whole, (attention_mask, kwargs))
    if points.is_fused and not any(map(is_hooked, (points.scores, *points.weight_points))):
        out = _fused(query, key, value, attention_mask, kwargs.get("scaling"))
    else:
        with SoftmaxTap(points, key.shape[-2], product=lambda: _scaled_product(query, key, kwargs)):
            out, _ = eager(module, query, key, value, attention_mask, **kwargs)
    return _context(points, out), None


def _scaled_product(query: Tensor, key: Tensor, options: Mapping[str, Any]) -> Tensor:
    """scale·Q·Kᵀ (batch, head, query, key) in float32, capped as the model does."""
    scale, softcap = options.get("scaling"), options.get("softcap")
    whole = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    product = query.float() @ whole.float().transpose(-1, -2)
    scores: Tensor = product * (query.shape[-1] ** -0.5 if scale is None else scale)
    return torch.tanh(scores / softcap) * softcap if softcap else scores


def _context(points: AttentionPoints, out: Tensor) -> Tensor:
    if is_hooked(points.context):
        return points.context(out.transpose(1, 2)).transpose(1, 2)
    return out


def _whole(one: object) -> object:
    return whole(one) if isinstance(one, Tensor) else one


def _streamed(
    points: AttentionPoints,
    module: nn.Module,
    eager: Callable[..., tuple[Tensor, Tensor]],
    tensors: tuple[Tensor, Tensor, Tensor, Tensor | None],
    options: dict[str, Any],
) -> Tensor:
    """The context (batch, query, head, d_head), by blocks of queries."""
    query, key, value, mask = tensors
    if points.has_formula:
        out, found = by_formula(*tensors, options, points.observed_names, points.path)
        points.report(found)
        return out
    blocks = points.blocks(query, key.shape[-2])
    parts = []
    for at in blocks:
        own = {
            name: rows(one, at) if isinstance(one, Tensor) and one.ndim == 4 else one
            for name, one in options.items()
        }
        with SoftmaxTap(points, key.shape[-2], blocks):
            part = query[..., slice(*at), :], key, value, None if mask is None else rows(mask, at)
            parts.append(eager(module, *part, **own)[0])
    points.report(blocks.results())
    return torch.cat(parts, dim=1)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None
) -> Tensor:
    """The context (batch, query, head, d_head) by one kernel."""
    if mask is not None:
        mask = mask[..., : key.shape[-2]]
    out = F.scaled_dot_product_attention(
        query, key, value, mask, scale=scaling, enable_gqa=key.shape[1] != query.shape[1]
    )
    return out.transpose(1, 2).contiguous()


class SoftmaxTap(FunctionMode):
    """Passes the scores and the weights of the softmax inside the block through their points.

    On a CPU a new tensor as large as the weights costs more than the step that fills it. Therefore
    the steps from Q·Kᵀ to the weights share one, where the self-check proved that a model file
    reads no earlier step again; the operations and their order stay those of the file.
    """

    def __init__(
        self,
        points: AttentionPoints,
        n_keys: int,
        blocks: ObservedBlocks | None = None,
        product: Callable[[], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.points, self.n_keys, self.blocks, self.product = points, n_keys, blocks, product
        self._reused: Tensor | None = None

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func is torch.cat and self.points.sink is not None:
            parts = args[0]
            if len(parts) == 2 and parts[0].shape[-1] == self.n_keys:
                return func([self.points.scored(parts[0]), parts[1]], *args[1:], **kwargs)
        if func in SOFTMAXES:
            scores = args[0] if args else kwargs.pop("input")
            if scores.shape[-1] == self.n_keys:
                if self.product is not None:
                    scores = self.points.biased(scores, self.product)
                scores = self.points.scored(scores)
            if self._may_overwrite(scores) and scores.dtype == torch.float32:
                func = _softmax_in_place
            self._reused = None
            return self.points.softened(
                func, scores, self.n_keys, *args[1:], blocks=self.blocks, **kwargs
            )
        if func in _IN_PLACE and not kwargs and self._may_overwrite(*args):
            return _IN_PLACE[func](*args)
        made = func(*args, **kwargs)
        if func in _MATMULS and self._is_product(made):
            self._reused = made
        return made

    def _is_product(self, made: Tensor) -> bool:
        """Whether a product may be Q·Kᵀ, in a pass that may write over it."""
        return (
            self.points.is_in_place
            and made.shape[-1] == self.n_keys
            and made.device.type == "cpu"
            and not torch.is_grad_enabled()
        )

    def _may_overwrite(self, first: Any, second: Any = None) -> bool:
        """Whether a step with these operands can write its result over the first."""
        if self._reused is None or first is not self._reused:
            return False
        if not isinstance(second, Tensor):
            return True
        shape = torch.broadcast_shapes(first.shape, second.shape)
        return second.dtype == first.dtype and shape == first.shape


def _softmax_in_place(scores: Tensor, dim: int, **_: Any) -> Tensor:
    return torch.softmax(scores, dim, out=scores)
