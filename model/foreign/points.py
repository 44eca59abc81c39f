"""The state of a pass of a model file, and the hook points of its attentions.

The points of the softmax are those of every attention (`model.attention.points`). A model file has
queries, keys and values in its own form, and scores that are finite where they are masked:
`AttentionPoints` converts them to the form of a site, and edited ones back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headlight.model.attention.observer import Observer, current_watch, observe_whole
from headlight.model.attention.points import SoftmaxPoints
from headlight.model.attention.scores import ScoreTerms
from headlight.model.attention.terms import AttentionFacts, Block
from headlight.model.cancellation import check
from headlight.model.foreign.deferred import Deferral
from headlight.model.hooks import HookPoint, is_hooked

BLOCK_ELEMENTS = 2**22
"""The most scores of a block that a model file computes, all heads at once."""


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
        """Return the number of this call of a module in this pass, from 0."""
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


def is_streaming() -> bool:
    """Return True if the attentions of the current pass run in blocks where they can."""
    current = state.get()
    return current is not None and current.is_streamed


def is_unscaled(path: str) -> bool:
    """Return True if the current pass leaves Q·Kᵀ of this attention unscaled."""
    current = state.get()
    return current is not None and path in current.unscaled


# --- the points of an attention -------------------------------------------------------------------


class Order(NamedTuple):
    """The numbers of an attention's operations among the products and softmaxes of a ``forward``.

    ``match`` is the product Q·Kᵀ, None if none has the size of the scores; ``average`` the product
    that is the context.
    """

    match: int | None
    softmax: int
    average: int


@dataclass(kw_only=True, eq=False)
class AttentionPoints(SoftmaxPoints):
    """The hook points of one call of one attention; None: the model has no such tensor.

    Args:
        facts: the terms of its softmax.
        order: finds the attention among the operations of a file without the attention interface.
        is_fused: whether the fused kernel gives its numbers.
        has_formula: whether blocks follow from the terms of the scores; otherwise the model file
            computes each block.
        is_in_place: whether every step of the model file may write over Q·Kᵀ.
    """

    facts: AttentionFacts
    queries: HookPoint | None
    keys: HookPoint | None
    values: HookPoint | None
    context: HookPoint
    order: Order | None = None
    is_fused: bool = False
    has_formula: bool = False
    is_in_place: bool = False

    @property
    def path(self) -> str:
        """The path of the attention."""
        return self.facts.path

    @property
    def scale(self) -> float | None:
        """The factor of Q·Kᵀ, if the scores follow from it; None: it is not known."""
        return self.facts.scale if self.facts.is_exact else None

    @property
    def has_interface(self) -> bool:
        """Whether the model file hands the attention to the interface."""
        return self.order is None

    @property
    def all(self) -> list[HookPoint]:
        """The points that the model has."""
        inputs, matrices = (self.queries, self.keys, self.values), (self.scores, self.weights)
        points = (*inputs, *matrices, self.sink, self.bias, self.context, *self.observed.values())
        return [point for point in points if point is not None]

    @property
    def may_fuse(self) -> bool:
        """As `SoftmaxPoints.may_fuse`, by the self-check."""
        return self.is_fused

    def wants_blocks(self, terms: ScoreTerms, n_queries: int, n_keys: int) -> bool:
        """Return True if the pass streams; its masks then have no memory."""
        return is_streaming()

    @property
    def is_streamed(self) -> bool:
        """Whether the current pass needs neither scores nor weights of this attention whole."""
        return is_streaming() and not self.needs_matrix

    def observe(self, weights: Tensor) -> None:
        """Pass what is observed of the weights (batch, head, query, key) through its points."""
        if names := self.observed_names:
            check()
            observed = observe_whole(weights, None, names, has_sink=self.sink is not None)
            current = state.get()
            if current is not None and current.start + weights.shape[-2] > weights.shape[-1]:
                observed = {  # a sliding cache has lost the first key
                    name: torch.zeros_like(each) if name == "first_token" else each
                    for name, each in observed.items()
                }
            self.report(observed)

    # --- tensors on their way --------------------------------------------------------------------

    def shared(self, point: HookPoint | None, tensor: Tensor) -> Tensor:
        """Pass keys or values of groups through a point that has them for every head."""
        if point is None or not is_hooked(point):
            return tensor
        whole = self._by_head(tensor)
        sharers = self.n_heads // whole.shape[1]
        seen = whole.repeat_interleave(sharers, dim=1) if sharers > 1 else whole
        edited = point(seen)
        return tensor if edited is seen else edited[:, ::sharers].reshape(tensor.shape)

    def through(self, point: HookPoint | None, tensor: Tensor) -> Tensor:
        """Pass a tensor with or without separate axes of batch and head through a point."""
        if point is None or not is_hooked(point):
            return tensor
        seen = self._by_head(tensor)
        edited = point(seen)
        return tensor if edited is seen else edited.reshape(tensor.shape).to(tensor.dtype)

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
        edited = self.bias(bias)
        if edited is bias:
            return scores
        changed = torch.where(seen, made + edited, by_head)
        return changed.reshape(scores.shape).to(scores.dtype)

    def scored(self, scores: Tensor) -> Tensor:
        """Pass scores through their point, with −∞ at masked keys."""
        if not is_hooked(self.scores):
            return scores
        floor = torch.finfo(scores.dtype).min / 2
        seen = self._by_head(scores).float()
        seen = seen.masked_fill(seen <= floor, -math.inf)
        edited = self.scores(seen)
        if edited is seen:
            return scores
        # A row that sees nothing stays finite, as the model file has it.
        lowest = torch.finfo(scores.dtype).min
        return edited.clamp(min=lowest).reshape(scores.shape).to(scores.dtype)

    def softened(
        self,
        softmax: Callable[..., Tensor],
        scores: Tensor,
        n_keys: int,
        *args: Any,
        blocks: ObservedBlocks | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Return the softmax of scores, passed through the points of the weights and of the sink.

        In a lower precision the points see the softmax of the same scores in float32. The weights
        of a block of queries are observed.
        """
        weights = softmax(scores, *args, **kwargs)
        if not self.sees_weights:
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
        edited = self.weights(by_head)
        self.observe(edited)
        if edited is by_head:
            return weights
        if n_tokens > n_keys:
            edited = torch.cat([edited, self._by_head(exact)[..., n_keys:]], dim=-1)
        return edited.reshape(weights.shape).to(weights.dtype)


class ObservedBlocks:
    """Observes the weights of an attention, one block of queries after another.

    Args:
        points: of the attention.
        queries: (…, query, d_head).
        n_keys: the keys of each query.
    """

    def __init__(self, points: AttentionPoints, queries: Tensor, n_keys: int) -> None:
        n_queries, n_rows = queries.shape[-2], math.prod(queries.shape[:-2]) // points.n_heads
        self.shape, self.watch = (n_rows, points.n_heads, n_queries, n_keys), current_watch()
        like = torch.empty(0, device=queries.device)
        names, has_sink = points.observed_names, points.sink is not None
        self.observer = Observer(names, self.watch, self.shape, like, has_sink=has_sink)
        self.path, self.at = points.path, (0, 0)

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks of queries."""
        n_queries, n_keys = self.shape[2:]
        elements = math.prod(self.shape[:2]) * n_keys
        step = max(1, min(self.watch.block_rows, BLOCK_ELEMENTS // elements))
        for start in range(0, n_queries, step):
            check()
            self.at = (start, min(start + step, n_queries))
            yield self.at
            self.watch.report(self.at[1] / n_queries)
            heads = slice(0, self.shape[1])
            self.watch.show(self.path, heads, self.observer.map, self.at[1])

    def add(self, weights: Tensor) -> None:
        """Observe the weights (batch, head, query, key) of the current block."""
        for row, part in enumerate(weights):
            self.observer.add(row, self.at, part)

    def results(self) -> dict[str, Tensor]:
        """All that was observed, by name."""
        self.watch.n_done += 1
        return self.observer.results()


# --- the points of a module ---------------------------------------------------------------------


def points_of(module: nn.Module) -> AttentionPoints | None:
    """Return the points of this call of an attention."""
    calls: list[AttentionPoints] | None = module.__dict__.get("_headlight_points")
    if not calls:
        return None
    current = state.get()
    number = current.next_call(id(module)) if current is not None else 0
    return calls[min(number, len(calls) - 1)]


def set_points(module: nn.Module, points: AttentionPoints) -> None:
    """Add the points of a module's next call."""
    module.__dict__.setdefault("_headlight_points", []).append(points)
