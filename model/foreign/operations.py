"""Watch the attention of a model file that has it in its ``forward``, without the interface.

Such a file hands nothing over, so there is no kernel to choose: its own operations compute the
attention, whole or for a block of queries, and are only watched. An `OperationRecorder` finds the
two products and the softmax among all operations of a ``forward`` once; an `OperationTap` passes
their tensors through the hook points of the attention, which are those of every softmax.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headlight.model.foreign.attention import SOFTMAXES
from headlight.model.foreign.deferred import deferred, record, rows
from headlight.model.foreign.points import (
    AttentionPoints,
    ObservedBlocks,
    Order,
    is_streaming,
    is_unscaled,
    observer,
    points_of,
)
from headlight.model.hooks import Function, FunctionMode, is_hooked

PRODUCTS = {
    torch.matmul,
    Tensor.matmul,
    Tensor.__matmul__,
    torch.bmm,
    Tensor.bmm,
    torch.baddbmm,
    Tensor.baddbmm,
    torch.einsum,
}
_ADDED = {torch.baddbmm, Tensor.baddbmm}


def watch_operations(module: nn.Module) -> None:
    """Let the products and the softmax in a module's ``forward`` pass its points."""
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        if observer.get() is not None:
            return original(*args, **kwargs)
        points = points_of(module)
        if points is None:
            return original(*args, **kwargs)
        is_changed = is_streaming() or is_unscaled(points.path)
        if not (is_changed or any(map(is_hooked, points.all))):
            return original(*args, **kwargs)
        assert points.order is not None
        with OperationTap(points, points.order):
            return original(*args, **kwargs)

    module.forward = forward


class OperationRecorder:
    """Finds the attention among the operations of one ``forward``.

    Its softmax is the one that it is shown; Q·Kᵀ is the first product as large as the scores, and
    the context the first product after the softmax in which the weights are a factor.
    """

    def __init__(self) -> None:
        self.products: list[tuple[Tensor, Tensor, int, int]] = []
        self.n_softmaxes = 0
        self.scores: Tensor | None = None
        self.weights: Tensor | None = None
        self.factors: tuple[Tensor, Tensor] | None = None
        self.values: Tensor | None = None
        self.context: Tensor | None = None
        self.order: Order | None = None
        self._n_products = 0
        self._place = 0

    def operation(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        is_attention: bool,
    ) -> Any:
        """Run an operation, and record it if it belongs to the attention."""
        if func in SOFTMAXES:
            self.n_softmaxes += 1
            result = func(*args, **kwargs)
            if is_attention and self.weights is None:
                self.scores, self.weights = args[0] if args else kwargs["input"], result
                self._place = self.n_softmaxes
            return result
        if func not in PRODUCTS:
            return func(*args, **kwargs)
        self._n_products += 1
        product = _product(func, args, kwargs)
        result = func(*args, **kwargs)
        if product is None or min(product.left.ndim, product.right.ndim) < 3:
            return result
        if self.weights is None:
            factors = product.left, product.right
            self.products.append((*factors, result.numel(), self._n_products))
        elif (
            self.context is None
            and product.left.numel() == self.weights.numel()
            and (product.left.shape[-2:] == self.weights.shape[-2:])
        ):
            self.values, self.context = product.right, product.arrange(result)
            self._finish()
        return result

    def skip(self, func: Callable[..., Any]) -> None:
        """Count an operation of a module within this one."""
        self.n_softmaxes += func in SOFTMAXES
        self._n_products += func in PRODUCTS

    def _finish(self) -> None:
        assert self.scores is not None
        match = None
        for left, right, size, number in self.products:
            if size == self.scores.numel():
                self.factors, match = (left, right), number
                break
        self.order = Order(match, self._place, self._n_products)


class OperationTap(FunctionMode):
    """Passes queries, keys, scores, weights, values and context of one attention through points."""

    def __init__(self, points: AttentionPoints, order: Order) -> None:
        super().__init__()
        self.points, self.order = points, order
        self._factors: tuple[Tensor, Tensor] | None = None
        self._n_products = self._n_softmaxes = 0
        self._blocks: ObservedBlocks | None = None

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func in SOFTMAXES:
            self._n_softmaxes += 1
            if self._n_softmaxes == self.order.softmax:
                return self._soften(func, args, kwargs)
        if func in PRODUCTS:
            self._n_products += 1
            if self._n_products == self.order.match:
                return self._match(func, args, kwargs)
            if self._n_products == self.order.average:
                product = _product(func, args, kwargs)
                assert product is not None
                right = self.points.shared(self.points.values, product.right)
                if self._blocks is None:
                    context = product.arrange(product.of(product.left, right))
                else:
                    context = self._average(product, right, self._blocks)
                return product.restore(self.points.through(self.points.context, context))
        return func(*args, **kwargs)

    def _match(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        product = _product(func, args, kwargs)
        assert product is not None
        left, right = self.points.through(self.points.queries, product.left), product.right
        if func is torch.einsum:
            right = self.points.shared(self.points.keys, right)
        else:
            right = self.points.shared(self.points.keys, right.transpose(-1, -2))
            right = right.transpose(-1, -2)
        self._factors = (left, right)
        if self.points.is_streamed:
            self._blocks = ObservedBlocks(self.points, left, right.shape[-1])
            queries = left
            left = deferred(left.to("meta"), lambda start, stop: queries[..., start:stop, :])
        return product.of(left, right)

    def _average(self, product: _Product, right: Tensor, blocks: ObservedBlocks) -> Tensor:
        """Return the context, by blocks of queries."""
        parts = [product.arrange(product.of(rows(product.left, at), right)) for at in blocks]
        self.points.report(blocks.results())
        return torch.cat(parts, dim=-2)

    def _soften(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor:
        scores: Tensor = args[0] if args else kwargs.pop("input")
        if self._blocks is not None:
            weights: Tensor = record(partial(self._softened, func), (scores, *args[1:]), kwargs)
            return weights
        scores = self.points.biased(scores, self._scaled_product)
        scores = self.points.scored(self._unscaled(scores))
        return self.points.softened(func, scores, scores.shape[-1], *args[1:], **kwargs)

    def _softened(
        self, softmax: Callable[..., Tensor], scores: Tensor, *args: Any, **kwargs: Any
    ) -> Tensor:
        """Return the weights of a block of queries, or of no memory."""
        if scores.is_meta:
            return softmax(scores, *args, **kwargs)
        n_keys = scores.shape[-1]
        return self.points.softened(softmax, scores, n_keys, *args, blocks=self._blocks, **kwargs)

    def _scaled_product(self) -> Tensor:
        assert self._factors is not None
        assert self.points.scale is not None
        left, right = self._factors
        return self.points.scale * (left.float() @ right.float())

    def _unscaled(self, scores: Tensor) -> Tensor:
        """Return the scores with Q·Kᵀ in place of scale·Q·Kᵀ, where the pass asks for it."""
        is_asked = is_unscaled(self.points.path)
        if not is_asked or self._factors is None or self.points.scale is None:
            return scores
        left, right = self._factors
        product = (left.float() @ right.float()).reshape(scores.shape)
        return (scores + (1 - self.points.scale) * product).to(scores.dtype)


def is_attention_shape(scores: Tensor) -> bool:
    """Return True if a tensor has the axes of scores: (batch·head, query, key), or four."""
    return scores.ndim in (3, 4) and scores.is_floating_point()


class _Product(NamedTuple):
    """The factors of a product of batches of matrices, the axes of batch and head first.

    ``of`` computes the product of other factors, with its axes in the order of the model file;
    ``arrange`` moves batch and head to the front of it, ``restore`` moves them back.
    """

    left: Tensor
    right: Tensor
    of: Callable[[Tensor, Tensor], Tensor]
    arrange: Callable[[Tensor], Tensor] = lambda product: product
    restore: Callable[[Tensor], Tensor] = lambda product: product


def _product(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Product | None:
    """Return the product that a function computes; None: it is not one of two tensors."""
    if func is torch.einsum:
        operands = args[1] if isinstance(args[1], list | tuple) else args[1:]
        return _einsum(args[0], *operands) if len(operands) == 2 else None
    if func in _ADDED:
        left = args[1] if len(args) > 1 else kwargs["batch1"]
        right = args[2] if len(args) > 2 else kwargs["batch2"]
        rest = {name: each for name, each in kwargs.items() if name not in ("batch1", "batch2")}
        before, after = args[:1], args[3:]
        return _Product(left, right, lambda left, right: func(*before, left, right, *after, **rest))
    left = args[0] if args else kwargs["input"]
    right = args[1] if len(args) > 1 else kwargs["other" if "other" in kwargs else "mat2"]
    return _Product(left, right, lambda left, right: func(left, right))


def _einsum(equation: str, left: Tensor, right: Tensor) -> _Product:
    """Return the product of an equation like "bnij,jbnd->ibnd", with b and n first."""
    factors, _, out = equation.replace(" ", "").partition("->")
    parts = [*factors.split(","), out]
    shared = [label for label in parts[0] if all(label in part for part in parts)]
    if "." in equation or not out or all(part.startswith("".join(shared)) for part in parts):
        return _Product(left, right, lambda left, right: torch.einsum(equation, left, right))
    if set(out[: len(shared)]) == set(shared):  # scores have the order of batch and head
        shared = list(out[: len(shared)])
    moved = [[*shared, *(label for label in part if label not in shared)] for part in parts]
    orders = [[part.index(label) for label in new] for part, new in zip(parts, moved, strict=True)]
    back = [moved[2].index(label) for label in out]
    arranged = ",".join("".join(new) for new in moved[:2]) + f"->{out}"
    return _Product(
        left.permute(orders[0]),
        right.permute(orders[1]),
        lambda left, right: torch.einsum(arranged, left, right),
        lambda product: product.permute(orders[2]),
        lambda product: product.permute(back),
    )
