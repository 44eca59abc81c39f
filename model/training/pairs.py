"""The batches a translator trains on: sentence pairs of like length, padded together.

Which pairs a step sees depends on the seed and the step alone, so a resumed run sees the same.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headlight.model.tokenizer import Tokenizer
from headlight.model.training.batches import Batch, generator_of

# Pairs are sorted by length among this many batches' worth, so that a batch holds little padding
# and yet other pairs in every epoch.
BATCHES_SORTED_TOGETHER = 32


class Pair(NamedTuple):
    """The token ids of a source, start token first, and of a target without special tokens."""

    source: list[int]
    target: list[int]


def encode_pairs(
    sources: Sequence[str], targets: Sequence[str], tokenizer: Tokenizer
) -> list[Pair]:
    """The ids of sentence pairs."""
    return [
        Pair([tokenizer.start_id, *source], target)
        for source, target in zip(
            tokenizer.encode_ids(sources), tokenizer.encode_ids(targets), strict=True
        )
    ]


def is_held_out(source: str, share: float) -> bool:
    """Whether a pair is kept for validation: a stable choice by a hash of its source alone.

    So all translations of one sentence lie on the same side, whatever else the corpus holds.
    """
    digest = hashlib.sha256(source.encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


@dataclass(frozen=True, eq=False)
class PairBatches:
    """Batches of at most `n_tokens` tokens, padding and both sides included.

    A pair that is longer has a batch of its own.

    Args:
        pairs: what to draw from; each pair once an epoch, in an order drawn anew.
        n_tokens: the size of a batch.
        start_id: the token that opens a target.
        end_id: the token that closes it; padding is made of it too.
        seed: decides the order together with the epoch.
    """

    pairs: Sequence[Pair]
    n_tokens: int
    start_id: int
    end_id: int
    seed: int
    _first_steps: list[int] = field(default_factory=lambda: [0], init=False, repr=False)

    def batch(self, step: int) -> Batch:
        """The batch of one step, counted through the epochs."""
        while step >= self._first_steps[-1]:
            number = len(self._first_steps) - 1
            self._first_steps.append(self._first_steps[-1] + len(_epoch(self, number)))
        number = bisect_right(self._first_steps, step) - 1
        numbers = _epoch(self, number)[step - self._first_steps[number]]
        return self.pad([self.pairs[number] for number in numbers])

    def in_order(self) -> list[Batch]:
        """All pairs once, the shortest first."""
        return [
            self.pad([self.pairs[n] for n in numbers]) for numbers in self._pack(self._sorted())
        ]

    def pad(self, pairs: Sequence[Pair]) -> Batch:
        """The pairs as one batch: a decoder reads <s> and the target, and says target and </s>."""
        source, is_token = _padded([pair.source for pair in pairs], self.end_id)
        ids, _ = _padded([[self.start_id, *pair.target] for pair in pairs], self.end_id)
        targets, is_counted = _padded([[*pair.target, self.end_id] for pair in pairs], self.end_id)
        return Batch(
            ids=ids, targets=targets, is_counted=is_counted, source=source, is_token=is_token
        )

    def epoch(self, number: int) -> list[list[int]]:
        """The numbers of the pairs in each batch of an epoch."""
        generator = generator_of(self.seed, number)
        order = torch.randperm(len(self.pairs), generator=generator).tolist()
        size = self._pairs_sorted_together()
        batches = [
            batch
            for first in range(0, len(order), size)
            for batch in self._pack(self._sorted(order[first : first + size]))
        ]
        return [batches[n] for n in torch.randperm(len(batches), generator=generator).tolist()]

    def _sorted(self, numbers: Sequence[int] | None = None) -> list[int]:
        chosen = range(len(self.pairs)) if numbers is None else numbers
        return sorted(chosen, key=lambda n: (len(self.pairs[n].target), len(self.pairs[n].source)))

    def _pack(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """Cut a list of pairs into batches as large as they may be."""
        batch: list[int] = []
        longest_source = longest_target = 0
        for number in numbers:
            pair = self.pairs[number]
            longest_source = max(longest_source, len(pair.source))
            longest_target = max(longest_target, len(pair.target) + 1)
            if batch and (len(batch) + 1) * (longest_source + longest_target) > self.n_tokens:
                yield batch
                batch = []
                longest_source, longest_target = len(pair.source), len(pair.target) + 1
            batch.append(number)
        if batch:
            yield batch

    def _pairs_sorted_together(self) -> int:
        total = sum(len(pair.source) + len(pair.target) + 1 for pair in self.pairs)
        return max(1, BATCHES_SORTED_TOGETHER * self.n_tokens * len(self.pairs) // total)


@lru_cache(maxsize=4)
def _epoch(batches: PairBatches, number: int) -> list[list[int]]:
    return batches.epoch(number)


def _padded(
    rows: Sequence[Sequence[int]], fill: int
) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row token"]]:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(longest) < lengths[:, None]
