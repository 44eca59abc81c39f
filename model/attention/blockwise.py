"""Attention over texts of any length: exact, observed while it runs, never a matrix of T × T.

    softmax(s)_j = exp(s_j − lse),  lse = m + ln ℓ,  ℓ = Σ_j exp(s_j − m),  m = max_j s_j

Queries and keys are read in blocks, whose scores stay in the processor's cache. The sums of a row
(ℓ, the context, the bins of a map) are relative to the greatest score so far; if the next block has
a greater one, m′, they are multiplied by exp(m − m′). After the last block they are divided by ℓ.
This is FlashAttention (Dao et al. 2022, https://arxiv.org/abs/2205.14135), with more sums than that
of the context.

Scores are sums of float32, so a single weight, such as a maximum, is off by some 1e-6 of itself;
the sums of a map average that out, and chosen rows are computed again in float64. With all scores
in float64 the maps would take 1.7 times as long. `torch.compile` gains nothing: the products, `exp`
and sums of a block of 256 × 1,024 take 0.67 ms without it and 0.68 ms with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.attention.observer import (
    ROWS,
    KeptAttention,
    Observer,
    PooledMap,
    Watch,
    binned,
    current_watch,
    mean_distance,
)
from headlight.model.attention.scores import Hidden, ScoreTerms
from headlight.model.attention.terms import MASKED, Block
from headlight.model.cancellation import check

MANY_KEYS = 2**14
"""From so many keys on a block has twice the queries, by which maps of 30,000 tokens in heads of 32
take 4 % less time; of 4,096 tokens they would take 6 % more."""

ACCELERATOR_ELEMENTS = 2**26
"""Scores of a block on an accelerator, all heads at once: fewer would not fill it."""

LARGEST = 64.0
"""The most that a score is away from 0, or less than the greatest of its row, before `exp`.

exp(±64) and sums of it are far from the ends of float32. Beyond them the library's `exp` is a
hundred times slower; a weight that should be less than exp(−64) is off by less than 2e-28.
"""

NARROW = 32
"""Keys of a bin: if it has fewer, a reduction over them takes ten times as long as one over rows,
so that a block has all keys, and its weights are pooled by rows first."""

LEAST_ROWS, MOST_SCORES = 64, 2**19
"""A block of all keys has at least so many queries, and no more than so many scores if it has more:
for the maps of 4,096 tokens in heads of 64 it takes a tenth less time than with 256 queries."""

KEPT_MASK = 2**17
"""The most cells of a block's mask that is kept for the next head."""


@dataclass(frozen=True)
class Normaliser:
    """Makes weights of exp(s − m), given the sums ℓ = Σ exp(s − m) of the rows of a block.

    ``factor`` is 1/ℓ: smaller if there is a sink, 0 in a row that sees no key.
    """

    sums: Float[Tensor, "head query 1"]
    greatest: Float[Tensor, "head query 1"]
    sinks: Float[Tensor, "head 1 1"] | None = None
    is_partial: bool = False

    @cached_property
    def logsumexp(self) -> Float[Tensor, "head query 1"]:
        """The sum m + ln ℓ over the keys and the sink, `MASKED` in a row that sees neither."""
        total = self._of_keys
        if self.sinks is not None:
            total = torch.logaddexp(total, self.sinks)
        elif self.is_partial:
            total = torch.where(self.sums > self._least, total, MASKED)
        return total

    @cached_property
    def factor(self) -> Float[Tensor, "head query 1"]:
        """By which exp(s − m) are weights."""
        scale = self.sums.clamp(min=self._least).reciprocal()
        if self.sinks is not None:  # the share of the keys, which keeps the digits of ℓ
            scale *= (self._of_keys - self.logsumexp).exp_()
        return scale * (self.sums > self._least) if self.is_partial else scale

    @cached_property
    def _of_keys(self) -> Tensor:
        return self.greatest + self.sums.clamp(min=self._least).log()

    @property
    def _least(self) -> float:
        return torch.finfo(self.sums.dtype).tiny

    def entropy(self, mean_scores: Float[Tensor, "head query 1"]) -> Float[Tensor, "head query 1"]:
        """−Σ w·ln w = lse − Σ w·s in nats, given Σ w·s over the keys; the sink counts as a key."""
        entropy = self.logsumexp - mean_scores
        if self.sinks is not None:
            entropy -= (self.sinks - self.logsumexp).exp() * self.sinks
        sees = self.logsumexp > MASKED / 2
        return torch.where(sees, entropy, 0).clamp_(min=0)


def blockwise_attention(
    queries: Float[Tensor, "batch head query d_head"],
    keys: Float[Tensor, "batch group key d_head"],
    values: Float[Tensor, "batch group key d_value"],
    terms: ScoreTerms,
    observed: Sequence[str] = (),
    *,
    path: str | None = None,
) -> tuple[Float[Tensor, "batch head query d_value"], dict[str, Tensor]]:
    """Return the context, and what the current `Watch` observes of the weights.

    Equal to `scaled_dot_product_attention`; rows that see no key have weights and context of 0.

    Args:
        queries: at the positions 0 … n−1.
        keys: shared by neighbouring heads if there are fewer groups than heads.
        values: as the keys.
        terms: of the scores.
        observed: names of `OBSERVED_AXES`.
        path: the attention's name in `Watch.kept`; None: it is not kept.

    Returns:
        The context in the dtype of the values, and by name the observed tensors with the axes of
        `OBSERVED_AXES`, in float32 or better.

    Raises:
        Cancelled: the pass was cancelled between two blocks.
    """
    watch = current_watch()
    keeps = watch.keeps and path is not None
    names = [*observed, *(["logsumexp"] if keeps and "logsumexp" not in observed else [])]
    chosen = watch.queries if ROWS in observed else ()
    batch, n_heads, n_queries = queries.shape[:3]
    n_keys, sharers = keys.shape[-2], n_heads // keys.shape[1]
    like = queries.new_empty(0, dtype=torch.promote_types(queries.dtype, torch.float32))
    observer = Observer(names, watch, (batch, n_heads, n_queries, n_keys), like)
    context = torch.empty(
        (*queries.shape[:3], values.shape[-1]), dtype=values.dtype, device=values.device
    )
    step, n_together, block_keys = _block_sizes(
        watch, (n_heads, n_queries, n_keys), observer, queries.device
    )
    memory = [
        like.new_empty(n_together * step * block_keys) for _ in range(1 + observer.has_scores)
    ]
    n_cells, n_finished = batch * n_heads * _cells(terms, n_queries, n_keys, step), 0
    for row in range(batch):
        seen = _Seen(terms, row, n_keys, queries.device)
        for begin in range(0, n_heads, n_together):
            heads = slice(begin, min(begin + n_together, n_heads))
            shared_keys = _shared(keys[row], heads, sharers).to(like.dtype)
            is_bounded = _is_bounded(queries[row, heads], shared_keys, terms)
            products = shared_keys.transpose(-2, -1).contiguous()  # its columns are read in order
            averaged = _shared(values[row], heads, sharers).to(like.dtype)
            for start in range(0, n_queries, step):
                check()
                at = (start, min(start + step, n_queries))
                place = _Place(row, heads, at, *seen.at(at), is_bounded)
                block = queries[row, heads, slice(*at)].to(like.dtype)
                context[row, heads, slice(*at)] = _attend_block(
                    block, products, averaged, terms, observer, memory, place, block_keys
                )
                n_finished += (heads.stop - heads.start) * _cells(terms, at[1], n_keys, step, start)
                watch.report(n_finished / n_cells)
                watch.show(path, heads, observer.map, at[1])
            is_exact = chosen and shared_keys.device.type != "mps"  # which has no float64
            exact = shared_keys.double() if is_exact else shared_keys
            for number, query in enumerate(chosen):
                at = (query, query + 1)
                place = _Place(row, heads, at, *seen.at(at), False)
                weights = _exact_row(queries[row, heads, slice(*at)], exact, terms, place)
                observer.found[ROWS][row, heads, number] = weights
    watch.n_done += 1
    results = observer.results()
    if keeps and path is not None:
        lse = results["logsumexp"] if "logsumexp" in observed else results.pop("logsumexp")
        watch.kept[path] = KeptAttention(
            queries=queries[0].detach(), keys=keys[0].detach(), logsumexp=lse[0], terms=terms
        )
    return context, results


class _Seen:
    """The keys that each block of queries of one row of the batch sees; the same for all heads.

    A small mask is kept for the next head, a large one is made again: all of them together would
    be as large as the whole matrix.
    """

    def __init__(self, terms: ScoreTerms, row: int, n_keys: int, device: torch.device) -> None:
        self.terms, self.row, self.n_keys, self.device = terms, row, n_keys, device
        self._kept: dict[Block, tuple[Block, Hidden | None]] = {}

    def at(self, queries: Block) -> tuple[Block, Hidden | None]:
        """As `ScoreTerms.seen`."""
        if queries in self._kept:
            return self._kept[queries]
        seen = self.terms.seen(self.row, queries, self.n_keys, self.device)
        if seen[1] is None or seen[1][1].numel() <= KEPT_MASK:
            self._kept[queries] = seen
        return seen


class _Place(NamedTuple):
    """The place of a block: row of the batch, heads, queries, keys and what is hidden of them."""

    row: int
    heads: slice
    at: Block
    to: Block
    hidden: Hidden | None
    is_bounded: bool

    def parts(self, size: int, width: int) -> Iterator[_Place]:
        """Yield the blocks of keys: all of them, whole bins of a width, or parts of one."""
        if size >= self.to[1] - self.to[0] > 0:
            yield self
            return
        size = size // width * width or size
        begin = self.to[0]
        while begin < self.to[1]:
            edge = begin // width * width
            end = edge + size if size >= width else min(begin + size, edge + width)
            to = (begin, min(end, self.to[1]))
            yield self._replace(to=to, hidden=self._hidden_in(to))
            begin = to[1]

    def _hidden_in(self, to: Block) -> Hidden | None:
        if self.hidden is None:
            return None
        columns, mask = self.hidden
        start = self.to[0] + columns.start
        first, last = max(start, to[0]), min(start + mask.shape[-1], to[1])
        if first >= last:
            return None
        return slice(first - to[0], last - to[0]), mask[..., first - start : last - start]


class _Bins(NamedTuple):
    """The sums and the maxima of exp(s − m) by bins of keys, from one bin on, and their m."""

    first: int
    sums: Tensor
    maxima: Tensor
    greatest: Tensor


class _RunningRows:
    """The sums of a block of queries over the keys so far, relative to the greatest score m.

    ``total`` is ℓ = Σ exp(s − m) and ``values`` are Σ exp(s − m)·v. In ``observed``, ``entropy``
    begins as Σ exp(s − m)·s, and ``mean_distance`` as Σ exp(s − m)·|i − j|.
    """

    def __init__(self, queries: Tensor, width: int, observer: Observer, place: _Place) -> None:
        self.observer, self.place = observer, place
        shape = queries.shape[:2]
        self.greatest = queries.new_full((*shape, 1), 0.0 if place.is_bounded else MASKED)
        self.total = queries.new_zeros(*shape, 1)
        self.values = queries.new_zeros(*shape, width)
        self.observed: dict[str, Tensor] = {
            name: queries.new_zeros(*shape, 1)
            for name in ("entropy", "mean_distance")
            if name in observer.names
        }
        self.first_token: tuple[Tensor, Tensor] | None = None
        self.bins: list[_Bins] = []
        self.block: tuple[Tensor, int] | None = None

    def raise_to(self, greatest: Tensor) -> None:
        """Let the sums be relative to the greatest score of another block, if it is greater."""
        greatest = torch.maximum(self.greatest, greatest)
        factor = (self.greatest - greatest).clamp_(min=-LARGEST).exp_()
        for each in (self.total, self.values, *self.observed.values()):
            each *= factor
        self.greatest = greatest

    def add(self, weights: Tensor, scores: Tensor, values: Tensor, place: _Place) -> None:
        """Add a block of exp(s − m); the scores are overwritten."""
        pooled = self.observer.map
        if pooled is None or pooled.columns < NARROW:
            sums = weights.sum(-1, keepdim=True)
            self.block = weights, place.to[0]
        else:
            first = place.to[0]
            bins = binned(weights, first, pooled.columns)
            block = _Bins(first // pooled.columns, bins.sum(-1), bins.amax(-1), self.greatest)
            self.bins.append(block)
            sums = block.sums.sum(-1, keepdim=True)
        self.total += sums
        self.values.baddbmm_(weights, values)
        if "entropy" in self.observed:
            scores *= weights
            self.observed["entropy"] += scores.sum(-1, keepdim=True)
        if "mean_distance" in self.observed:
            distance = mean_distance(weights, place.at, place.to, sums[..., 0])
            self.observed["mean_distance"] += distance[..., None]
        if "first_token" in self.observer.names and place.to[0] == 0:
            self.first_token = weights[..., :1].clone(), self.greatest

    def finish(self, terms: ScoreTerms) -> Tensor:
        """Return the context; all that is observed is handed to the observer."""
        sinks = terms.sinks
        if sinks is not None:
            sinks = sinks[self.place.heads].to(self.total)[:, None, None]
        normaliser = Normaliser(self.total, self.greatest, sinks, terms.is_partial)
        factor = normaliser.factor
        statistics = {name: each * factor for name, each in self.observed.items()}
        if "entropy" in statistics:
            statistics["entropy"] = normaliser.entropy(statistics["entropy"])
        if "logsumexp" in self.observer.names:
            statistics["logsumexp"] = normaliser.logsumexp
        if self.first_token is not None:
            first, greatest = self.first_token
            statistics["first_token"] = first * self._since(greatest) * factor
        row, heads, at = self.place[:3]
        place = (row, heads, slice(*at))
        self.observer.add_statistics(
            place, {name: each[..., 0] for name, each in statistics.items()}
        )
        if self.observer.map is not None:
            self._add_bins(self.observer.map, factor)
        return self.values * factor

    def _since(self, greatest: Tensor) -> Tensor:
        """Return exp(m − m′) of an earlier greatest score m and the last one."""
        return (greatest - self.greatest).clamp_(min=-LARGEST).exp_()

    def _add_bins(self, pooled: PooledMap, factor: Tensor) -> None:
        if self.block is not None:
            weights, first = self.block
            pooled.add(self.place[:2], weights.mul_(factor), self.place.at[0], first)
            return
        shape = (*self.total.shape[:2], pooled.sums.shape[-1])
        sums, maxima = (self.total.new_zeros(shape) for _ in range(2))
        for block in self.bins:
            columns = slice(block.first, block.first + block.sums.shape[-1])
            by = factor if self.place.is_bounded else factor * self._since(block.greatest)
            sums[..., columns] += block.sums * by
            greatest = maxima[..., columns]
            torch.maximum(greatest, block.maxima * by, out=greatest)
        pooled.add_bins(self.place[:2], self.place.at[0], sums, maxima)


def _attend_block(
    queries: Tensor,
    products: Tensor,
    averaged: Tensor,
    terms: ScoreTerms,
    observer: Observer,
    memory: Sequence[Tensor],
    place: _Place,
    block_keys: int,
) -> Tensor:
    """Return the context of a block of queries.

    ``products`` are all keys (head, d_head, key), and ``averaged`` the values.
    """
    running = _RunningRows(queries, averaged.shape[-1], observer, place)
    for part in place.parts(block_keys, observer.map.columns if observer.map else 1):
        to, hidden, keys = part.to, part.hidden, slice(*part.to)
        shape = (*queries.shape[:2], to[1] - to[0])
        # 1. The scores, and exp(s − m) in their place unless they are read once more.
        into = memory[0][: math.prod(shape)].view(shape)
        scores = terms.scores(
            queries,
            products[..., keys].transpose(-2, -1),
            heads=place.heads,
            at=place.at,
            to=to,
            hidden=None if place.is_bounded else hidden,
            out=into,
        )
        weights = memory[-1][: math.prod(shape)].view(shape)
        if place.is_bounded:
            torch.exp(scores, out=weights)
        else:
            running.raise_to(scores.amax(-1, keepdim=True))
            torch.sub(scores, running.greatest, out=weights).clamp_(min=-LARGEST).exp_()
        if hidden is not None:
            columns, mask = hidden
            if terms.is_partial:
                weights[..., columns].masked_fill_(mask, 0)
            else:  # seven times as fast
                weights[..., columns].tril_(place.at[0] - to[0] - columns.start)
        # 2. The sums of the row.
        running.add(weights, scores, averaged[:, keys], part)
    return running.finish(terms)


def _exact_row(
    query: Tensor, keys: Tensor, terms: ScoreTerms, place: _Place
) -> Float[Tensor, "head key"]:
    """Return the weights of one query on all keys, in the dtype of the keys."""
    weights = keys.new_zeros(len(keys), keys.shape[1])
    part = slice(*place.to)
    if place.to[1] > place.to[0]:
        scores = terms.scores(
            query.to(keys.dtype),
            keys[:, part],
            heads=place.heads,
            at=place.at,
            to=place.to,
            hidden=place.hidden,
        )
        lse = scores.logsumexp(-1, keepdim=True)
        if terms.sinks is not None:
            lse = torch.logaddexp(lse, terms.sinks[place.heads].to(lse)[:, None, None])
        weights[:, part] = (scores - lse).exp_()[:, 0]
        if place.hidden is not None:
            columns, mask = place.hidden
            weights[:, part][:, columns].masked_fill_(mask, 0)
    return weights


def _is_bounded(queries: Tensor, keys: Tensor, terms: ScoreTerms) -> bool:
    """Return True if |q|·|k| proves every exp(s) finite: then no maximum is needed."""
    if not terms.is_product or not keys.numel() or not queries.numel():
        return False
    longest = [float(tensor.norm(dim=-1).amax()) for tensor in (queries, keys)]
    return bool(abs(terms.scale) * longest[0] * longest[1] <= LARGEST)


def _block_sizes(
    watch: Watch, shape: tuple[int, int, int], observer: Observer, device: torch.device
) -> tuple[int, int, int]:
    """Return the queries of a block, its heads and its keys.

    An accelerator takes all heads and keys at once.
    """
    n_heads, n_queries, n_keys = shape
    is_cpu = device.type == "cpu"
    n_together = min(watch.block_heads, n_heads)
    keys = min(watch.block_keys // (1 + observer.has_scores), n_keys)
    if not is_cpu:
        n_together, keys = n_heads, n_keys
    rows = watch.block_rows if is_cpu else ACCELERATOR_ELEMENTS // (n_heads * max(1, n_keys))
    if observer.map is not None and observer.map.columns < NARROW:
        keys = n_keys
        if is_cpu:
            rows = min(rows, max(LEAST_ROWS, MOST_SCORES // max(1, n_keys)))
    if is_cpu and keys < n_keys >= MANY_KEYS:
        rows *= 2
    if observer.map is not None:
        rows = rows // observer.map.rows * observer.map.rows or rows
    return max(1, min(rows, n_queries)), n_together, keys


def _cells(terms: ScoreTerms, stop: int, n_keys: int, step: int, start: int = 0) -> int:
    """Return the weights that a head computes for some queries, in blocks of `step` of them."""
    n_cells = 0
    for begin in range(start, stop, step):
        at = (begin, min(begin + step, stop))
        first, last = terms.near_keys(at, n_keys)
        n_cells += max(1, (at[1] - at[0]) * (last - first))
    return n_cells


def _shared(groups: Tensor, heads: slice, sharers: int) -> Tensor:
    """Return the keys or values of some heads, of (group, key, d_head)."""
    if sharers == 1:
        return groups[heads]
    places = torch.arange(heads.start, heads.stop, device=groups.device) // sharers
    return groups[places]
