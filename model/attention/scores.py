"""The scores of an attention, by terms from which any block of them can be computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.attention.terms import MASKED, Block, Terms

Bias = Callable[[slice, Block, Block], Float[Tensor, "#head query key"]]
"""The bias of some heads at a block of queries and a block of keys."""

Visible = Callable[[int, Block, Block], Tensor | None]
"""The mask of a row of the batch at a block, True where a query sees a key; None: everywhere."""

Hidden = tuple[slice, Tensor]
"""Some columns of a block, and the mask of them, True where a query does not see a key."""


def scaled_product(
    queries: Float[Tensor, "*batch head query d_head"],
    keys: Float[Tensor, "*batch group key d_head"],
    terms: Terms,
) -> Float[Tensor, "*batch head query key"]:
    """Return softcap·tanh(scale·Q·Kᵀ / softcap) in float32: the scores without bias and mask.

    A scale of None is 1/√d_head.
    """
    sharers = queries.shape[-3] // keys.shape[-3]
    shared = keys.repeat_interleave(sharers, dim=-3) if sharers > 1 else keys
    product = queries.float() @ shared.float().transpose(-1, -2)
    scores: Tensor = product * (queries.shape[-1] ** -0.5 if terms.scale is None else terms.scale)
    cap = terms.softcap
    return torch.tanh(scores / cap) * cap if cap else scores


@dataclass(frozen=True, kw_only=True)
class ScoreTerms(Terms):
    """The terms of the scores of one pass, by which any part of them can be computed.

    Args:
        scale: as of `Terms`, and known.
        slopes: of ALiBi, one for each head.
        bias: added to the scores, such as a relative bias.
        visible: another mask.
        mask: all other masks, whole, for a kernel that needs a matrix: True where a query sees a
            key, or added to the scores; None: `is_causal` and `is_token` are the mask.
        is_token: (batch, key) False at padding; None: there is no padding.
        sinks: one more score for each head, whose weight goes to no key.
    """

    scale: float
    slopes: Float[Tensor, " head"] | None = None
    bias: Bias | None = None
    visible: Visible | None = None
    mask: Tensor | None = None
    is_token: Tensor | None = None
    sinks: Float[Tensor, " head"] | None = None

    @property
    def is_product(self) -> bool:
        """Whether the scores are products of queries and keys only."""
        return self.softcap is None and self.slopes is None and self.bias is None

    @property
    def is_partial(self) -> bool:
        """Whether more than causality hides keys, so that a query may see none."""
        others = (self.window, self.chunk, self.is_token, self.visible)
        return any(term is not None for term in others)

    def near_keys(self, queries: Block, n_keys: int) -> Block:
        """Return the keys from the first to the last near enough to any of these queries."""
        (start, stop), first, last = queries, 0, n_keys
        if self.is_causal:
            last = min(last, stop)
        if self.window is not None:
            first, last = max(first, start - self.window + 1), min(last, stop + self.window - 1)
        if self.chunk is not None:
            first = max(first, start // self.chunk * self.chunk)
            last = min(last, -(-stop // self.chunk) * self.chunk)
        return first, max(first, last)

    def seen(
        self, row: int, at: Block, n_keys: int, device: torch.device
    ) -> tuple[Block, Hidden | None]:
        """Return the keys from the first to the last that are seen, and what is hidden.

        The same for all heads. Keys that no query sees cost nothing.
        """
        to = self.near_keys(at, n_keys)
        if self.visible is None and self.is_token is None:
            return to, self.hidden(row, at, to, device)
        mask = self._mask(row, at, to, device)
        if mask is None or not bool(mask.any()):
            return (to if mask is None else (to[0], to[0])), None
        first, last = _ends(mask.any(0))
        return (to[0] + first, to[0] + last), _hidden_of(mask[:, first:last])

    def hidden(self, row: int, at: Block, to: Block, device: torch.device) -> Hidden | None:
        """Return the keys among these that some query does not see; None: there are none."""
        if not self.is_partial:
            if not self.is_causal or to[1] <= at[0] + 1:
                return None
            first = max(to[0], at[0] + 1)  # every query sees the keys before
            later = torch.arange(first, to[1], device=device)
            queries = torch.arange(*at, device=device)
            return slice(first - to[0], to[1] - to[0]), later > queries[:, None]
        mask = self._mask(row, at, to, device)
        return None if mask is None else _hidden_of(mask)

    def _mask(self, row: int, at: Block, to: Block, device: torch.device) -> Tensor | None:
        """Return True where a query sees a key; None: everywhere."""
        queries = torch.arange(*at, device=device)[:, None]
        keys = torch.arange(*to, device=device)
        parts: list[Tensor] = self.sees(queries, keys)
        if self.is_token is not None:
            parts.append(self.is_token[row, to[0] : to[1]].expand(len(queries), -1))
        if self.visible is not None and (mask := self.visible(row, at, to)) is not None:
            parts.append(mask)
        return reduce(torch.logical_and, parts) if parts else None

    def scores(
        self,
        queries: Float[Tensor, "head query d_head"],
        keys: Float[Tensor, "head key d_head"],
        *,
        heads: slice,
        at: Block,
        to: Block,
        hidden: Hidden | None,
        out: Tensor | None = None,
    ) -> Float[Tensor, "head query key"]:
        """Return the scores of a block, `MASKED` at keys that are not visible.

        Args:
            queries: of the heads, at the positions `at`, in float32 or better.
            keys: of the heads, at the positions `to`.
            heads: which heads these are.
            at: the positions of the queries.
            to: the positions of the keys.
            hidden: what the queries do not see among these keys.
            out: the memory for the result.
        """
        scores = torch.bmm(queries * self.scale, keys.transpose(-2, -1), out=out)
        if self.softcap is not None:
            scores.div_(self.softcap).tanh_().mul_(self.softcap)
        if self.slopes is not None:
            distance = distances(at, to, scores).abs_()
            for head, slope in zip(scores, self.slopes[heads].tolist(), strict=True):
                head.sub_(distance, alpha=slope)
        if self.bias is not None:
            scores += self.bias(heads, at, to)
        if hidden is not None:
            columns, mask = hidden
            scores[..., columns].masked_fill_(mask, MASKED)
        return scores


def _ends(chosen: Tensor) -> Block:
    """Return the first place that is chosen, and the one after the last."""
    places = chosen.nonzero()
    return int(places[0]), int(places[-1]) + 1


def _hidden_of(mask: Tensor) -> Hidden | None:
    """Return the columns from the first to the last in which a query does not see a key."""
    is_partial = ~mask.all(0)
    if not bool(is_partial.any()):
        return None
    first, last = _ends(is_partial)
    return slice(first, last), ~mask[:, first:last]


def distances(at: Block, to: Block, like: Tensor) -> Tensor:
    """Return query − key of a block, in the dtype of another tensor."""
    queries = torch.arange(*at, device=like.device, dtype=like.dtype)
    return queries[:, None] - torch.arange(*to, device=like.device, dtype=like.dtype)
