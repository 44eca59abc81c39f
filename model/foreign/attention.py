"""The attention of a model file with the attention interface of Transformers.

`attend` is what such a file calls. Kernels are chosen where they are for this project's own models
(`model.attention.kernels.attend`), and the fused one and the blocks by formula are the same. Whole
weights are another matter: nothing here computes them. That file's own ``eager_attention_forward``
does, inside a `SoftmaxTap` that sees its scores and weights, so that the numbers are those of
Transformers' own eager attention. The self-check allows a shared kernel only where it proved to
give these numbers. The files that have their attention in a ``forward`` are watched by
`operations`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from headlight.model.attention import kernels
from headlight.model.attention.points import SoftmaxPoints
from headlight.model.attention.scores import ScoreTerms, scaled_product
from headlight.model.attention.terms import Block
from headlight.model.foreign.deferred import rows, whole
from headlight.model.foreign.points import (
    AttentionPoints,
    ObservedBlocks,
    is_streaming,
    is_unscaled,
    observer,
    points_of,
)
from headlight.model.hooks import Function, FunctionMode

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
    """Return the context (batch, query, head, d_head) of a module; see the attention interface."""
    eager = own_eager(type(module))  # type: ignore[arg-type]  # a class can be hashed
    if eager is None:
        raise NotImplementedError(f"the file of {type(module).__name__} has no eager attention")
    watching = observer.get()
    if watching is not None:
        attended: tuple[Tensor, Tensor] = watching.attention(
            module, eager, (query, key, value, attention_mask), kwargs
        )
        return attended
    points = points_of(module)
    if points is None:
        return eager(module, query, key, value, attention_mask, **kwargs)
    query = points.through(points.queries, query)
    key, value = points.shared(points.keys, key), points.shared(points.values, value)
    if is_unscaled(points.path):
        kwargs["scaling"] = 1.0
    code = _FileCode(module, eager, attention_mask, kwargs, points)
    of_file = kernels.Kernels(code.in_blocks, code.whole)
    terms = terms_of(query, attention_mask, kwargs)
    context = points.context(kernels.attend(query, key, value, terms, points, of_file))
    return context.transpose(1, 2).contiguous(), None


def terms_of(query: Tensor, mask: Tensor | None, options: dict[str, Any]) -> ScoreTerms:
    """Return the terms of an attention's scores, as the model file hands them over.

    Args:
        query: (batch, head, query, d_head).
        mask: added to the scores (batch, 1, query, key), deferred or not; None: there is none.
        options: the other arguments of the attention interface.
    """
    scale, bias = options.get("scaling"), options.get("position_bias")

    def bias_of(heads: slice, at: Block, to: Block) -> Tensor:
        assert bias is not None
        part: Tensor = rows(bias, at)[0, heads, :, slice(*to)].float()
        return part

    def visible(row: int, at: Block, to: Block) -> Tensor:
        assert mask is not None
        part = rows(mask, at)
        seen = part if part.dtype == torch.bool else part > torch.finfo(part.dtype).min / 2
        return seen[min(row, len(seen) - 1), 0, :, slice(*to)].expand(at[1] - at[0], -1)

    return ScoreTerms(
        scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
        softcap=options.get("softcap"),
        sinks=options.get("s_aux"),
        bias=None if bias is None else bias_of,
        visible=None if mask is None else visible,
        mask=mask,
    )


@dataclass(slots=True)
class _FileCode:
    """A model file's own code for one call, as the kernels that show weights."""

    module: nn.Module
    eager: Callable[..., tuple[Tensor, Tensor]]
    mask: Tensor | None
    options: dict[str, Any]
    points: AttentionPoints

    def whole(
        self, queries: Tensor, keys: Tensor, values: Tensor, terms: ScoreTerms, _: SoftmaxPoints
    ) -> Tensor:
        """Compute all weights at once."""
        mask, options = self.mask, self.options
        if is_streaming():
            mask, options = tree_map(_whole, (mask, options))
        product = partial(scaled_product, queries, keys, terms)
        with SoftmaxTap(self.points, keys.shape[-2], product=product):
            context = self.eager(self.module, queries, keys, values, mask, **options)[0]
        return context.transpose(1, 2)

    def in_blocks(
        self, queries: Tensor, keys: Tensor, values: Tensor, terms: ScoreTerms, _: SoftmaxPoints
    ) -> Tensor:
        """Compute the blocks by the terms if they proved right, otherwise one after another."""
        if self.points.has_formula:
            # The terms read deferred rows; nothing of that is to be recorded.
            with torch._C.DisableTorchFunction():
                return kernels.attend_in_blocks(queries, keys, values, terms, self.points)
        blocks = ObservedBlocks(self.points, queries, keys.shape[-2])
        parts = []
        for at in blocks:
            mask = None if self.mask is None else rows(self.mask, at)
            options = {
                name: rows(each, at) if isinstance(each, Tensor) and each.ndim == 4 else each
                for name, each in self.options.items()
            }
            part = queries[..., slice(*at), :], keys, values, mask
            with SoftmaxTap(self.points, keys.shape[-2], blocks):
                parts.append(self.eager(self.module, *part, **options)[0])
        self.points.report(blocks.results())
        return torch.cat(parts, dim=1).transpose(1, 2)


def _whole(each: object) -> object:
    return whole(each) if isinstance(each, Tensor) else each


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
        """Return True if a product may be Q·Kᵀ, in a pass that may write over it."""
        return (
            self.points.is_in_place
            and made.shape[-1] == self.n_keys
            and made.device.type == "cpu"
            and not torch.is_grad_enabled()
        )

    def _may_overwrite(self, first: Any, second: Any = None) -> bool:
        """Return True if a step with these operands can write its result over the first."""
        if self._reused is None or first is not self._reused:
            return False
        if not isinstance(second, Tensor):
            return True
        shape = torch.broadcast_shapes(first.shape, second.shape)
        return second.dtype == first.dtype and shape == first.shape


def _softmax_in_place(scores: Tensor, dim: int, **_: Any) -> Tensor:
    return torch.softmax(scores, dim, out=scores)
