"""The rows a language model trains on: text of the corpus, and segments that repeat.

Which rows a step sees depends on the seed and the step alone, so a resumed run sees the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headlight.model.training.corpus import TokenStream
from headlight.model.transformer import Prediction, Transformer

Rows = Int[Tensor, "row token"]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a model reads in one step, and what it has to say to it.

    ``ids`` (row, token) and, token for token, ``targets`` and ``is_counted``, which says where a
    target counts in the loss. An encoder–decoder reads ``source`` (row, source) first.
    ``is_token`` says what of the encoder's text is no padding; None: all.
    """

    ids: Tensor
    targets: Tensor
    is_counted: Tensor
    source: Tensor | None = None
    is_token: Tensor | None = None

    @classmethod
    def of_rows(cls, rows: Rows, is_counted: Bool[Tensor, "row token-1"]) -> Batch:
        """Rows for a decoder: it reads all tokens but the last, and says all but the first."""
        return cls(ids=rows[:, :-1], targets=rows[:, 1:], is_counted=is_counted)

    def predict(self, model: Transformer) -> Prediction:
        """What the model says."""
        texts = [self.ids] if self.source is None else [self.source, self.ids]
        prediction: Prediction = model(*texts, is_token=self.is_token)
        return prediction

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        return self._map(lambda tensor: tensor.to(device))

    def part(self, number: int, of: int) -> Batch:
        """Every `of`-th row from row `number` on."""
        return self._map(lambda tensor: tensor[number::of])

    @classmethod
    def join(cls, *batches: Batch) -> Batch:
        """The rows of several batches of one length, without a source or padding."""
        return cls(
            ids=torch.cat([batch.ids for batch in batches]),
            targets=torch.cat([batch.targets for batch in batches]),
            is_counted=torch.cat([batch.is_counted for batch in batches]),
        )

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return Batch(
            ids=change(self.ids),
            targets=change(self.targets),
            is_counted=change(self.is_counted),
            source=None if self.source is None else change(self.source),
            is_token=None if self.is_token is None else change(self.is_token),
        )


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
        return Batch.of_rows(rows, torch.ones_like(rows[:, 1:], dtype=torch.bool))


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
    return Batch.of_rows(prepend(start_id, torch.stack(rows)), is_repeated)


def prepend(start_id: int, rows: Rows) -> Int[Tensor, "row token+1"]:
    """The rows with the start token before each."""
    return torch.cat([rows.new_full((len(rows), 1), start_id), rows], dim=1)
