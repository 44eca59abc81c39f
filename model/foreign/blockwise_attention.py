"""Attention of foreign models in blocks of queries, so that a text of any length can be observed.

The fast way is the formula of `scores.ScoreTerms`, whose terms are what the model file hands
to the attention interface: scale, softcap, sinks, position bias and mask. If the self-check finds
that a model computes something else, its own eager attention computes each block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from headlight.model.attention.blockwise import blockwise_attention
from headlight.model.attention.scores import ScoreTerms
from headlight.model.attention.terms import Block
from headlight.model.cancellation import check
from headlight.model.foreign.deferred import rows
from headlight.model.observation import Observer, current_watch

BLOCK_ELEMENTS = 2**22
"""The most scores of a block that a model file computes, all heads at once."""


def terms_of(query: Tensor, mask: Tensor | None, options: dict[str, Any]) -> ScoreTerms:
    """The terms of an attention's scores.

    Args:
        query: (batch, head, query, d_head).
        mask: added to the scores (batch, 1, query, key), deferred or not; None: there is none.
        options: the further arguments of the attention interface.
    """
    scale, bias = options.get("scaling"), options.get("position_bias")
    return ScoreTerms(
        scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
        softcap=options.get("softcap"),
        sinks=options.get("s_aux"),
        bias=None if bias is None else _bias_of(bias),
        visible=None if mask is None else _visible_of(mask),
    )


def _bias_of(bias: Tensor) -> Callable[[slice, Block, Block], Tensor]:
    def part(heads: slice, at: Block, to: Block) -> Tensor:
        return rows(bias, at)[0, heads, :, slice(*to)].float()

    return part


def _visible_of(mask: Tensor) -> Callable[[int, Block, Block], Tensor]:
    def part(row: int, at: Block, to: Block) -> Tensor:
        own = rows(mask, at)
        seen = own if own.dtype == torch.bool else own > torch.finfo(own.dtype).min / 2
        return seen[min(row, len(seen) - 1), 0, :, slice(*to)].expand(at[1] - at[0], -1)

    return part


def by_formula(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    options: dict[str, Any],
    names: Sequence[str],
    path: str,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The context (batch, query, head, d_head) and what is observed, by the formula.

    Args:
        query: (batch, head, query, d_head).
        key: (batch, group, key, d_head).
        value: as `key`.
        mask: as in `terms_of`.
        options: as in `terms_of`.
        names: of `observation.OBSERVED_AXES`.
        path: of the attention.
    """
    terms = terms_of(query, mask, options)
    kept = path if names else None
    with torch._C.DisableTorchFunction():  # `rows` are read; nothing here is to be recorded
        context, found = blockwise_attention(query, key, value, terms, names, path=kept)
    return context.transpose(1, 2).contiguous(), found


class ObservedBlocks:
    """Observes the weights of an attention, one block of queries after another.

    Args:
        names: of `observation.OBSERVED_AXES`.
        shape: (batch, head, query, key) of the whole weights.
        device: of the weights.
        has_sink: whether what a row lacks to 1 is the weight of a sink.
    """

    def __init__(
        self,
        names: Sequence[str],
        shape: tuple[int, int, int, int],
        device: torch.device,
        *,
        has_sink: bool,
    ) -> None:
        self.shape, self.watch = shape, current_watch()
        like = torch.empty(0, device=device)
        self.observer = Observer(names, self.watch, shape, like, has_sink=has_sink)
        self.at: Block = (0, 0)

    def __iter__(self) -> Iterator[Block]:
        """The blocks of queries."""
        n_queries, n_keys = self.shape[2:]
        elements = math.prod(self.shape[:2]) * n_keys
        step = max(1, min(self.watch.block_rows, BLOCK_ELEMENTS // elements))
        for start in range(0, n_queries, step):
            check()
            self.at = (start, min(start + step, n_queries))
            yield self.at
            self.watch.report(self.at[1] / n_queries)

    def add(self, weights: Tensor) -> None:
        """Observe the weights (batch, head, query, key) of the current block."""
        for row, own in enumerate(weights):
            self.observer.add(row, self.at, own)

    def results(self) -> dict[str, Tensor]:
        """All that was observed, by name."""
        self.watch.n_done += 1
        return self.observer.results()
