"""The rows a language model trains on: text of the corpus, and segments that repeat.

Which rows a step sees depends on the seed and the step alone, so a resumed run sees the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from model.training.corpus import TokenStream

Rows = Int[Tensor, "row token"]


class Batch(NamedTuple):
    """Rows of tokens, and which of their tokens, as targets, count in the loss.

    ``rows`` (row, token) begin with the start token; ``is_counted`` (row, token − 1).
    """

    rows: Tensor
    is_counted: Tensor

    @property
    def inputs(self) -> Rows:
        """What the model reads: all tokens of a row but its last."""
        return self.rows[:, :-1]

    @property
    def targets(self) -> Rows:
        """What it has to predict: all tokens but the first."""
        return self.rows[:, 1:]

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        return Batch(self.rows.to(device), self.is_counted.to(device))

    @classmethod
    def join(cls, *batches: Batch) -> Batch:
        """The rows of several batches of one length."""
        return cls(*(torch.cat(parts) for parts in zip(*batches, strict=True)))


def generator_of(seed: int, *numbers: int) -> torch.Generator:
    """A random generator that depends on nothing but these numbers."""
    mixed = seed
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 1) % (2**63 - 1)
    return torch.Generator().manual_seed(mixed)


@dataclass(frozen=True)
class TextRows:
    """Rows of a token stream, each row once an epoch in an order drawn anew, start token first."""

    stream: TokenStream
    starts: Int[Tensor, " row"]
    length: int
    start_id: int
    seed: int

    @classmethod
    def cut(cls, stream: TokenStream, *, length: int, start_id: int, seed: int) -> TextRows:
        """Cut a stream into rows of `length` tokens after the start token.

        Raises:
            CorpusError: the stream is shorter than one row.
        """
        return cls(stream, stream.row_starts(length), length, start_id, seed)

    def take(self, first: int, count: int) -> Batch:
        """The rows numbered from `first` on; numbering goes on through the epochs."""
        n_rows = len(self.starts)
        orders = {
            epoch: torch.randperm(n_rows, generator=generator_of(self.seed, epoch))
            for epoch in range(first // n_rows, (first + count - 1) // n_rows + 1)
        }
        chosen = [orders[n // n_rows][n % n_rows] for n in range(first, first + count)]
        places = self.starts[torch.stack(chosen)][:, None] + torch.arange(self.length)
        rows = prepend(self.start_id, self.stream.ids[places])
        return Batch(rows, torch.ones_like(rows[:, 1:], dtype=torch.bool))


def repeated_rows(
    ids: Int[Tensor, " token"],
    *,
    count: int,
    length: int,
    start_id: int,
    generator: torch.Generator,
    longest: int,
    shortest: int = 4,
) -> Batch:
    """Rows in which one segment of unrelated tokens repeats until the row is full.

    Only a head that finds the earlier occurrence can predict the second round, so these rows
    teach induction (Olsson et al. 2022, https://arxiv.org/abs/2209.11895). The first round, which
    nothing can predict, does not count.

    Args:
        ids: where tokens are drawn from: the corpus, for instance, to draw by frequency.
        count: how many rows.
        length: tokens in a row after the start token.
        start_id: the token put before each row.
        generator: where chance comes from.
        longest: the greatest length of a segment.
        shortest: the least.
    """
    rows, is_repeated = [], torch.ones(count, length, dtype=torch.bool)
    for number in range(count):
        size = int(torch.randint(shortest, longest + 1, (1,), generator=generator))
        segment = ids[torch.randint(len(ids), (size,), generator=generator)]
        rows.append(segment.repeat(-(-length // size))[:length])
        is_repeated[number, :size] = False
    return Batch(prepend(start_id, torch.stack(rows)), is_repeated)


def prepend(start_id: int, rows: Rows) -> Int[Tensor, "row token+1"]:
    """The rows with the start token before each."""
    return torch.cat([rows.new_full((len(rows), 1), start_id), rows], dim=1)
