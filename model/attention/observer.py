"""Observe attention weights while they are computed, in blocks or whole.

The weights of a long text are never in memory together. The `Watch` of a pass says what is kept:
maps, pooled by bins of queries and keys, the exact rows of chosen queries, and some numbers of each
row. An `Observer` collects them block by block.

Any weight follows later from only the queries, the keys and lse, w_ij = exp(s_ij − lse_i):
`KeptAttention` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from headlight.model.attention.scores import ScoreTerms
from headlight.model.attention.terms import MASKED, Block
from headlight.model.cancellation import check
from headlight.model.distributions import entropy

STATISTICS = ("entropy", "first_token", "mean_distance", "logsumexp")
"""The numbers of each row (batch head query)."""

MAPS = ("mean_map", "max_map")
"""The pooled weights (batch head query_bin key_bin)."""

ROWS = "rows"
"""The exact weights of the chosen queries (batch head row key)."""

OBSERVED_AXES = {
    **dict.fromkeys(STATISTICS, "batch head query"),
    **dict.fromkeys(MAPS, "batch head query_bin key_bin"),
    ROWS: "batch head row key",
}

BLOCK_ROWS, BLOCK_KEYS = 256, 1024
"""Queries and keys of a block on a processor, one head at a time: 1 MB of scores, which its cache
holds. Blocks of all keys took 1.7 times as long for the maps of 30,000 tokens in heads of 32. If
the scores are read once more, in addition to the weights, a block has half the keys."""


# --- pooling --------------------------------------------------------------------------------------


def bin_width(n_tokens: int, resolution: int) -> int:
    """Return the tokens of a bin, so that a text has at most `resolution` bins."""
    return -(-n_tokens // resolution)


def n_bins(n_tokens: int, resolution: int) -> int:
    """Return the bins of a text; the last one may hold fewer tokens."""
    return -(-n_tokens // bin_width(n_tokens, resolution))


class PooledMap:
    """The sum and the maximum of weights by bins of queries and keys, filled block by block.

    Args:
        shape: batch and heads.
        n_queries: the rows of the whole map, or of the part of it that is pooled.
        n_keys: its columns.
        resolution: the greatest number of bins on each side.
        like: a tensor of the device and the dtype.
    """

    def __init__(
        self, shape: Sequence[int], n_queries: int, n_keys: int, resolution: int, like: Tensor
    ) -> None:
        self.n_queries, self.n_keys = n_queries, n_keys
        self.rows, self.columns = bin_width(n_queries, resolution), bin_width(n_keys, resolution)
        sides = (n_bins(n_queries, resolution), n_bins(n_keys, resolution))
        self.sums = like.new_zeros(*shape, *sides)
        self.maxima = like.new_zeros(*shape, *sides)

    def add(
        self, place: tuple[int | slice, ...], weights: Tensor, start: int, first: int = 0
    ) -> None:
        """Add the rows from `start` on, at the keys from `first` on, of some heads of the batch."""
        for part, width in self._row_bins(start, weights.shape[-2]):
            rows = weights[..., part, :].unflatten(-2, (-1, width))
            sums = binned(rows.sum(-2), first, self.columns).sum(-1)
            maxima = binned(rows.amax(-2), first, self.columns).amax(-1)
            self._add_bins(place, start + part.start, first // self.columns, sums, maxima)

    def coarse(self, heads: slice, n_bins: int) -> Float[Tensor, "head query_bin key_bin"]:
        """Return the mean weights of some heads of the first text, so far, in at most so many bins.

        Args:
            heads: of the map.
            n_bins: the most bins on each side; each is the mean of neighbouring bins of the map.
        """
        mean = self.mean[0, heads]
        n_rows, n_columns = mean.shape[-2:]
        return F.adaptive_avg_pool2d(mean[None], (min(n_bins, n_rows), min(n_bins, n_columns)))[0]

    def add_bins(
        self, place: tuple[int | slice, ...], start: int, sums: Tensor, maxima: Tensor
    ) -> None:
        """Add the rows from `start` on, given the sum and the maximum of each bin of keys."""
        for part, width in self._row_bins(start, sums.shape[-2]):
            of_part = (array[..., part, :].unflatten(-2, (-1, width)) for array in (sums, maxima))
            self._add_bins(
                place, start + part.start, 0, next(of_part).sum(-2), next(of_part).amax(-2)
            )

    def _row_bins(self, start: int, n_rows: int) -> Iterator[tuple[slice, int]]:
        """Parts of a block of rows, and of how many rows of a bin each is made.

        A part is as many whole bins as the block holds, or the part of one that it holds.
        """
        begin, end = start, start + n_rows
        while begin < end:
            whole = (end - begin) // self.rows * self.rows if begin % self.rows == 0 else 0
            step = whole or min(end - begin, self.rows - begin % self.rows)
            yield slice(begin - start, begin - start + step), self.rows if whole else step
            begin += step

    def _add_bins(
        self, place: tuple[int | slice, ...], start: int, column: int, sums: Tensor, maxima: Tensor
    ) -> None:
        row = start // self.rows
        rows, columns = slice(row, row + sums.shape[-2]), slice(column, column + sums.shape[-1])
        of_bins = self.maxima[place][..., rows, columns]
        self.sums[place][..., rows, columns] += sums
        torch.maximum(of_bins, maxima, out=of_bins)

    @property
    def mean(self) -> Tensor:
        """The mean over all cells of each bin; the weight of a key that is not visible is 0."""
        rows = _bin_sizes(self.n_queries, self.rows, self.sums)
        columns = _bin_sizes(self.n_keys, self.columns, self.sums)
        return self.sums / (rows[:, None] * columns)


def binned(weights: Tensor, first: int, width: int) -> Tensor:
    """Return the weights (… bin key) by bins of keys, 0 where one reaches beyond them."""
    n_before = first % width
    n_after = -(n_before + weights.shape[-1]) % width
    if n_before or n_after:
        weights = F.pad(weights, (n_before, n_after))
    bins: Tensor = weights.unflatten(-1, (-1, width))
    return bins


def _bin_sizes(n: int, width: int, like: Tensor) -> Tensor:
    starts = torch.arange(0, n, width, device=like.device)
    return (starts + width).clamp(max=n).sub(starts).to(like.dtype)


# --- the watch and its observers ------------------------------------------------------------------


OnMap = Callable[[str, slice, PooledMap, int], object]
"""Takes the path of an attention, some of its heads, its maps so far, and how many of its queries
they hold."""


@dataclass(kw_only=True)
class Watch:
    """The observation of a pass: how fine the maps are, which rows are kept, and its progress.

    Args:
        resolution: the greatest number of bins on each side of a map.
        queries: the positions whose rows are kept whole.
        keeps: whether queries, keys and logsumexp of each observed attention are kept for tiles.
        n_attentions: the number of attentions that the pass observes.
        on_progress: called with the share of them that is done, from 0 to 1.
        on_map: called with the maps after each block of queries.
        block_rows: the most queries of a block on a processor.
        block_keys: the most keys of a block on a processor.
        block_heads: the most heads of a block on a processor.
    """

    resolution: int = 256
    queries: tuple[int, ...] = ()
    keeps: bool = False
    n_attentions: int = 0
    on_progress: Callable[[float], object] | None = None
    on_map: OnMap | None = None
    block_rows: int = BLOCK_ROWS
    block_keys: int = BLOCK_KEYS
    block_heads: int = 1
    kept: dict[str, KeptAttention] = field(default_factory=dict)
    n_done: int = 0

    def report(self, share: float) -> None:
        """Report that this share of the attention that runs is done."""
        if self.on_progress is not None and self.n_attentions:
            self.on_progress(min(1.0, (self.n_done + share) / self.n_attentions))

    def show(self, path: str | None, heads: slice, pooled: PooledMap | None, n_read: int) -> None:
        """Show the maps of some heads, which hold the first `n_read` queries."""
        if self.on_map is not None and path is not None and pooled is not None:
            self.on_map(path, heads, pooled, n_read)


_watch: ContextVar[Watch | None] = ContextVar("headlight_watch", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """Observe the attentions of the passes inside the ``with`` block."""
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


def current_watch() -> Watch:
    """Return the observation of the current context, or one with the defaults."""
    return _watch.get() or Watch()


class Observer:
    """Collects what is asked for of the rows of weights, block by block.

    Args:
        names: of `OBSERVED_AXES`.
        watch: the resolution and the chosen queries.
        shape: (batch, head, query, key) of the whole weights.
        like: a tensor of the device and the dtype.
        has_sink: whether what a row lacks to 1 is the weight of a sink, of rows that come without
            their normaliser.
    """

    def __init__(
        self,
        names: Sequence[str],
        watch: Watch,
        shape: tuple[int, int, int, int],
        like: Tensor,
        *,
        has_sink: bool = False,
    ) -> None:
        self.names, self.queries, self.has_sink = frozenset(names), watch.queries, has_sink
        batch, heads, n_queries, n_keys = shape
        self.n_cached = max(n_keys - n_queries, 0)  # keys before those of the queries
        self.found: dict[str, Tensor] = {
            name: like.new_zeros(batch, heads, n_queries) for name in STATISTICS if name in names
        }
        if ROWS in self.names:
            self.found[ROWS] = like.new_zeros(batch, heads, len(self.queries), n_keys)
        self.has_scores = "entropy" in self.names
        self.map: PooledMap | None = None
        if self.names & set(MAPS):
            self.map = PooledMap((batch, heads), n_queries, n_keys, watch.resolution, like)

    def add(self, row: int, at: Block, weights: Float[Tensor, "head query key"]) -> None:
        """Add some rows of the whole weights of all heads."""
        for number, query in enumerate(self.queries):
            if ROWS in self.names and at[0] <= query < at[1]:
                self.found[ROWS][row, :, number] = weights[:, query - at[0]]
        if self.map is not None:
            self.map.add((row,), weights, at[0])
        statistics: dict[str, Tensor] = {}
        if "first_token" in self.names and weights.shape[-1]:
            statistics["first_token"] = weights[..., 0]
        if "mean_distance" in self.names:
            places = (at[0] + self.n_cached, at[1] + self.n_cached)
            statistics["mean_distance"] = mean_distance(weights, places, (0, weights.shape[-1]))
        if "entropy" in self.names:
            statistics["entropy"] = self._entropy(weights)
        self.add_statistics((row, slice(None), slice(*at)), statistics)

    def add_statistics(
        self, place: tuple[int, slice, slice], statistics: Mapping[str, Float[Tensor, "head query"]]
    ) -> None:
        """Add the numbers of the rows of a block that are asked for."""
        for name in self.names & statistics.keys():
            self.found[name][place] = statistics[name]

    def _entropy(self, weights: Tensor) -> Tensor:
        """Return −Σ w·ln w in nats; with a sink, what a row lacks to 1 counts as a key."""
        if self.has_sink:
            rest = (1 - weights.sum(-1, keepdim=True)).clamp_(min=0)
            return entropy(weights, "nats") + entropy(rest, "nats")
        return entropy(weights, "nats")

    def results(self) -> dict[str, Tensor]:
        """Return all that was asked for, by name."""
        if self.map is not None:
            maps = {"mean_map": self.map.mean, "max_map": self.map.maxima}
            self.found |= {name: maps[name] for name in MAPS if name in self.names}
        return self.found


def mean_distance(weights: Tensor, at: Block, to: Block, share: Tensor | None = None) -> Tensor:
    """Return Σ_j w_ij·|i − j| of each row, of which `share` is Σ_j w_ij.

    Keys before the block of queries are i − j away, and keys after it j − i. Counted from the first
    query of the block, so that a short distance far into a text keeps its digits.
    """
    (start, stop), (first, last) = at, to
    left, right = min(max(start, first), last), max(min(stop, last), first)
    within = weights[..., left - first : right - first]
    near = _near(stop - start, left - start, right - start, weights.dtype, weights.device)
    distances = (within * near).sum(-1)
    offsets = torch.arange(stop - start, device=weights.device, dtype=weights.dtype)
    for begin, end, sign in ((first, left, 1), (right, last, -1)):
        if end > begin:
            far = weights[..., begin - first : end - first]
            away = torch.arange(
                start - begin, start - end, -1, device=weights.device, dtype=weights.dtype
            )
            is_rest = far.shape[-1] + within.shape[-1] == last - first
            rest = None if share is None or not is_rest else share - within.sum(-1)
            total = far.sum(-1) if rest is None else rest
            distances += sign * (far @ away + offsets * total)
    return distances


# A tensor made in inference mode could not be kept for a pass that has a gradient.
@lru_cache(maxsize=4)
@torch.inference_mode(False)
def _near(n_rows: int, left: int, right: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return |i − j| of the rows 0 … n−1 at the keys of a block next to them."""
    queries = torch.arange(n_rows, device=device, dtype=dtype)
    return (queries[:, None] - torch.arange(left, right, device=device, dtype=dtype)).abs_()


def observe_whole(
    weights: Float[Tensor, "batch head query key"],
    scores: Float[Tensor, "batch head query key"] | None,
    observed: Sequence[str],
    *,
    sinks: Float[Tensor, " head"] | None = None,
    has_sink: bool = False,
) -> dict[str, Tensor]:
    """As `blockwise_attention` observes, of weights that were computed whole.

    Args:
        weights: after every edit.
        scores: of the same pass, −∞ at masked keys; None: logsumexp is not observed.
        observed: names of `OBSERVED_AXES`.
        sinks: of the heads, of which logsumexp is computed.
        has_sink: whether what a row lacks to 1 is the weight of a sink.
    """
    watch = current_watch()
    has_sink = has_sink or sinks is not None
    names = [name for name in observed if name != "logsumexp"]
    batch, n_heads, n_queries, n_keys = weights.shape
    shape = (batch, n_heads, n_queries, n_keys)
    observer = Observer(names, watch, shape, weights, has_sink=has_sink)
    for row in range(len(weights)):
        observer.add(row, (0, n_queries), weights[row])
    watch.n_done += 1
    watch.report(0)
    tensors = observer.results()
    if "logsumexp" in observed and scores is not None:
        tensors["logsumexp"] = scores.logsumexp(-1).clamp(min=MASKED)
        if sinks is not None:
            tensors["logsumexp"] = torch.logaddexp(tensors["logsumexp"], sinks[:, None])
    return {name: tensors[name] for name in observed if name in tensors}


# --- tiles ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class KeptAttention:
    """The queries, keys and logsumexp of one attention of one text: any weight follows from them.

    ``queries`` (head, query, d_head) and ``keys`` (group, key, d_head) are those whose products are
    the scores: after rotary positions, and keys by group.
    """

    queries: Tensor
    keys: Tensor
    logsumexp: Float[Tensor, "head query"]
    terms: ScoreTerms

    @property
    def n_bytes(self) -> int:
        """The memory that it takes."""
        tensors = (self.queries, self.keys, self.logsumexp)
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Heads, queries and keys."""
        return (*self.queries.shape[:2], self.keys.shape[1])

    def tile(self, head: int, queries: Block, keys: Block, resolution: int) -> Mapping[str, Tensor]:
        """Return the weights of a rectangle of one head's map, exact or pooled.

        Args:
            head: the head.
            queries: the rows.
            keys: the columns.
            resolution: the greatest number of bins on each side.

        Returns:
            ``mean_map`` and ``max_map`` (query_bin, key_bin). Bins of 1 × 1 are exact.

        Raises:
            ValueError: there is no such head, or the rectangle is empty or leaves the map.
            Cancelled: between two blocks.
        """
        n_heads, n_queries, n_keys = self.shape
        if not 0 <= head < n_heads:
            raise ValueError(f"there is no head {head}; the heads are 0 to {n_heads - 1}")
        for name, (begin, end), n in (("queries", queries, n_queries), ("keys", keys, n_keys)):
            if not 0 <= begin < end <= n:
                is_empty = " is empty; it" if 0 <= begin == end <= n else ""
                raise ValueError(f"{name} {begin}:{end}{is_empty} must be a part of 0:{n}")
        if resolution < 1:
            raise ValueError(f"resolution ({resolution}) must be at least 1")
        like = self.logsumexp
        group = head * len(self.keys) // n_heads
        of_tile = self.keys[group : group + 1, keys[0] : keys[1]].to(like.dtype)
        shape = (queries[1] - queries[0], keys[1] - keys[0])
        pooled = PooledMap((), *shape, resolution, like)
        rows = max(1, min(shape[0], BLOCK_ROWS * 4096 // shape[1]))
        if pooled.rows <= rows:
            rows = rows // pooled.rows * pooled.rows
        for start in range(queries[0], queries[1], rows):
            check()
            at = (start, min(start + rows, queries[1]))
            block = self.queries[head : head + 1, slice(*at)].to(like.dtype)
            heads, hidden = slice(head, head + 1), self.terms.hidden(0, at, keys, of_tile.device)
            scores = self.terms.scores(block, of_tile, heads=heads, at=at, to=keys, hidden=hidden)
            lse = self.logsumexp[head, slice(*at), None]
            weights = (scores[0] - lse).exp_()
            if not bool((lse > MASKED / 2).all()):
                weights *= lse > MASKED / 2
            pooled.add((), weights, start - queries[0])
        return {"mean_map": pooled.mean, "max_map": pooled.maxima}


def keep_attention(
    path: str | None,
    queries: Float[Tensor, "batch head query d_head"],
    keys: Float[Tensor, "batch group key d_head"],
    scores: Float[Tensor, "batch head query key"],
    terms: ScoreTerms,
) -> None:
    """Keep the queries and keys of weights that were computed whole, if the current `Watch` does.

    Args:
        path: of the attention; None: it is not kept.
        queries: whose products with the keys are the scores.
        keys: shared by neighbouring heads if there are fewer groups than heads.
        scores: −∞ at masked keys.
        terms: of the scores.
    """
    watch = current_watch()
    if watch.keeps and path is not None:
        watch.kept[path] = KeptAttention(
            queries=queries[0].detach(),
            keys=keys[0].detach(),
            logsumexp=scores[0].logsumexp(-1).clamp(min=MASKED),
            terms=terms,
        )
