"""Batches: rows of text, rows of repeated segments, and padded sentence pairs.

A batch depends only on the seed and the step, so a resumed run trains on the same batches.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headlight.lab.training.losses import token_losses
from headlight.model.corpus import CorpusError, TokenStream
from headlight.model.tokenizer import Tokenizer
from headlight.model.transformer import Prediction, Transformer

Rows = Int[Tensor, "row token"]
Corpus = TypeVar("Corpus")
Settings = TypeVar("Settings")

SHORTEST_SEGMENT = 4
VALIDATION_ROWS = 16
# Pairs are sorted by length within windows of this many batches: little padding, and different
# batches in every epoch.
BATCHES_SORTED_TOGETHER = 32


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The input and the targets of one step.

    ``ids`` (row, token) is the input; ``targets`` and ``is_counted`` have the same shape, and
    only targets with ``is_counted`` enter the loss. ``source`` (row, source) is the input of the
    encoder of an encoder–decoder. ``is_token`` is False at padding of the encoder's input; None
    if there is no padding.
    """

    ids: Tensor
    targets: Tensor
    is_counted: Tensor
    source: Tensor | None = None
    is_token: Tensor | None = None

    @classmethod
    def of_rows(cls, rows: Rows, is_counted: Bool[Tensor, "row token-1"]) -> Batch:
        """Make a batch for a decoder, whose targets are the input shifted by one token."""
        return cls(ids=rows[:, :-1], targets=rows[:, 1:], is_counted=is_counted)

    @classmethod
    def of_answers(
        cls, rows: Sequence[Sequence[int]], n_prompts: Sequence[int], end_id: int
    ) -> Batch:
        """Pad rows of a prompt and its answer, of which only the answer is counted."""
        ids, is_token = padded(rows, end_id)
        is_answer = torch.arange(ids.shape[1]) >= torch.tensor(n_prompts)[:, None]
        return cls.of_rows(ids, (is_token & is_answer)[:, 1:])

    def predict(self, model: Transformer) -> Prediction:
        """Run the model on the batch."""
        texts = [self.ids] if self.source is None else [self.source, self.ids]
        prediction: Prediction = model(*texts, is_token=self.is_token)
        return prediction

    def losses(
        self, prediction: Prediction, *, smoothing: float = 0.0
    ) -> Float[Tensor, "row token"]:
        """Compute the loss of each target, in nats; `token_losses`."""
        return token_losses(prediction.logits, self.targets, smoothing=smoothing)

    def to(self, device: torch.device) -> Batch:
        """Copy the batch to a device."""
        return self._map(lambda tensor: tensor.to(device))

    def part(self, number: int, of: int) -> Batch:
        """Take every `of`-th row, beginning with row `number`."""
        return self._map(lambda tensor: tensor[number::of])

    @classmethod
    def join(cls, *batches: Batch) -> Batch:
        """Concatenate batches of one length, without a source or padding."""
        return cls(
            ids=torch.cat([batch.ids for batch in batches]),
            targets=torch.cat([batch.targets for batch in batches]),
            is_counted=torch.cat([batch.is_counted for batch in batches]),
        )

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **{name: change(tensor) for name, tensor in tensors.items()})


@runtime_checkable
class Batches(Protocol):
    """The batches of a recipe. A batch depends only on the seed and the step."""

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, counted from 0."""

    def validation(self) -> list[Batch]:
        """Return the held-out batches."""


@dataclass(frozen=True)
class Material(Generic[Corpus, Settings]):
    """All that a recipe makes its batches of.

    ``corpus`` is what the recipe's ``read`` returns, ``max_tokens`` the longest text that the model
    reads, and ``config`` the settings of the batches. The seed decides every batch together with
    the step.
    """

    corpus: Corpus
    tokenizer: Tokenizer
    max_tokens: int
    config: Settings
    seed: int

    def text_rows(self: Material[Sequence[str], Any], length: int) -> TextRows:
        """Cut documents into rows of `length` tokens after the start token.

        Raises:
            CorpusError: the documents are shorter than one row.
        """
        stream = TokenStream.encode(self.corpus, self.tokenizer)
        start_id = self.tokenizer.start_id
        return TextRows.cut(stream, length=length, start_id=start_id, seed=self.seed)


def generator_of(seed: int, *numbers: int) -> torch.Generator:
    """Make a random generator that depends only on these numbers."""
    mixed = seed
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 1) % (2**63 - 1)
    return torch.Generator().manual_seed(mixed)


def prepend(start_id: int, rows: Rows) -> Int[Tensor, "row token+1"]:
    """Put the start token before each row."""
    return torch.cat([rows.new_full((len(rows), 1), start_id), rows], dim=1)


def padded(
    rows: Sequence[Sequence[int]], fill: int
) -> tuple[Int[Tensor, "row token"], Bool[Tensor, "row token"]]:
    """Pad rows at their end to one length, and tell their tokens from the padding."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(longest) < lengths[:, None]


# --- text -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextRows:
    """Rows of a token stream, shuffled again in every epoch, with the start token before each."""

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
        """Return `count` rows from number `first` on, counted through the epochs."""
        n_rows = len(self.starts)
        orders = {
            epoch: torch.randperm(n_rows, generator=generator_of(self.seed, epoch))
            for epoch in range(first // n_rows, (first + count - 1) // n_rows + 1)
        }
        chosen = [orders[n // n_rows][n % n_rows] for n in range(first, first + count)]
        places = self.starts[torch.stack(chosen)][:, None] + torch.arange(self.length)
        rows = prepend(self.start_id, self.stream.ids[places])
        return Batch.of_rows(rows, torch.ones_like(rows[:, 1:], dtype=torch.bool))

    def hold_out(self, count: int) -> tuple[TextRows, TextRows]:
        """Split off the last `count` rows for validation: at most a tenth, but at least one.

        Returns:
            The rows to train on and the held-out ones. Rows may overlap.

        Raises:
            CorpusError: there are fewer than two rows.
        """
        n_rows = len(self.starts)
        if n_rows < 2:
            raise CorpusError(
                f"the corpus fills one row of {self.length} tokens; training needs at least two, "
                "one of them to validate on"
            )
        n_trained = n_rows - min(count, max(1, n_rows // 10))
        return (
            replace(self, starts=self.starts[:n_trained]),
            replace(self, starts=self.starts[n_trained:]),
        )

    def once(self) -> list[Batch]:
        """Return every row once, in batches of `VALIDATION_ROWS`."""
        n_rows, count = len(self.starts), VALIDATION_ROWS
        return [self.take(row, min(count, n_rows - row)) for row in range(0, n_rows, count)]


def repeated_rows(
    ids: Int[Tensor, " token"],
    *,
    count: int,
    length: int,
    start_id: int,
    generator: torch.Generator,
    longest: int,
) -> Batch:
    """Make rows in which one segment of unrelated tokens repeats until the row is full.

    Only a head that finds the earlier occurrence can predict the repetition, so these rows teach
    induction (Olsson et al. 2022, https://arxiv.org/abs/2209.11895). The first occurrence, which
    is unpredictable, does not enter the loss.

    Args:
        ids: the tokens to draw from; those of a corpus are drawn by their frequency.
        count: the number of rows.
        length: tokens in a row after the start token.
        start_id: the token put before each row.
        generator: the source of randomness.
        longest: the greatest length of a segment; the least is `SHORTEST_SEGMENT`.
    """
    rows, is_repeated = [], torch.ones(count, length, dtype=torch.bool)
    for number in range(count):
        size = int(torch.randint(SHORTEST_SEGMENT, longest + 1, (1,), generator=generator))
        segment = ids[torch.randint(len(ids), (size,), generator=generator)]
        rows.append(segment.repeat(-(-length // size))[:length])
        is_repeated[number, :size] = False
    return Batch.of_rows(prepend(start_id, torch.stack(rows)), is_repeated)


# --- sentence pairs -------------------------------------------------------------------------------


class Pair(NamedTuple):
    """The token ids of a source, start token first, and of a target without special tokens."""

    source: list[int]
    target: list[int]


def encode_pairs(
    sources: Sequence[str], targets: Sequence[str], tokenizer: Tokenizer
) -> list[Pair]:
    """Tokenize sentence pairs."""
    return [
        Pair([tokenizer.start_id, *source], target)
        for source, target in zip(
            tokenizer.encode_ids(sources), tokenizer.encode_ids(targets), strict=True
        )
    ]


def is_held_out(source: str, share: float) -> bool:
    """Choose the pairs of the validation set by a hash of only the source.

    All translations of one sentence are on the same side, whatever else the corpus holds.
    """
    digest = hashlib.sha256(source.encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


@dataclass(frozen=True, eq=False)
class PairBatches:
    """Batches of sentence pairs of similar length, padded together.

    A batch has at most `n_tokens` tokens, padding and both sides included; a longer pair has a
    separate batch.

    Args:
        pairs: each pair occurs once an epoch, in a new order.
        n_tokens: the size of a batch.
        start_id: the first token of a decoder's input.
        end_id: the last target, and the padding.
        seed: decides the order together with the epoch.
        altered: gives the pairs that an epoch replaces, by their index.
    """

    pairs: Sequence[Pair]
    n_tokens: int
    start_id: int
    end_id: int
    seed: int
    altered: Callable[[int], Mapping[int, Pair]] = lambda epoch: {}
    _first_steps: list[int] = field(default_factory=lambda: [0], init=False, repr=False)

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, counted through the epochs."""
        while step >= self._first_steps[-1]:
            number = len(self._first_steps) - 1
            self._first_steps.append(self._first_steps[-1] + len(_epoch(self, number)[1]))
        number = bisect_right(self._first_steps, step) - 1
        pairs, batches = _epoch(self, number)
        return self.pad([pairs[index] for index in batches[step - self._first_steps[number]]])

    def in_order(self) -> list[Batch]:
        """Return all pairs once, the shortest first."""
        return [
            self.pad([self.pairs[n] for n in numbers])
            for numbers in _packed(self.pairs, _by_length(self.pairs), self.n_tokens)
        ]

    def pad(self, pairs: Sequence[Pair]) -> Batch:
        """Pad pairs to one batch: decoder input <s> + target, decoder target target + </s>."""
        source, is_token = padded([pair.source for pair in pairs], self.end_id)
        ids, _ = padded([[self.start_id, *pair.target] for pair in pairs], self.end_id)
        targets, is_counted = padded([[*pair.target, self.end_id] for pair in pairs], self.end_id)
        return Batch(
            ids=ids, targets=targets, is_counted=is_counted, source=source, is_token=is_token
        )

    def epoch(self, number: int) -> tuple[list[Pair], list[list[int]]]:
        """Return the pairs of an epoch, and the indices of those in each of its batches."""
        generator = generator_of(self.seed, number)
        pairs = list(self.pairs)
        for index, pair in self.altered(number).items():
            pairs[index] = pair
        order = torch.randperm(len(pairs), generator=generator).tolist()
        size = self._pairs_sorted_together()
        batches = [
            batch
            for first in range(0, len(order), size)
            for batch in _packed(
                pairs, _by_length(pairs, order[first : first + size]), self.n_tokens
            )
        ]
        order = torch.randperm(len(batches), generator=generator).tolist()
        return pairs, [batches[n] for n in order]

    def _pairs_sorted_together(self) -> int:
        total = sum(len(pair.source) + len(pair.target) + 1 for pair in self.pairs)
        return max(1, BATCHES_SORTED_TOGETHER * self.n_tokens * len(self.pairs) // total)


@lru_cache(maxsize=2)
def _epoch(batches: PairBatches, number: int) -> tuple[list[Pair], list[list[int]]]:
    return batches.epoch(number)


def _by_length(pairs: Sequence[Pair], numbers: Sequence[int] | None = None) -> list[int]:
    """Sort some of the pairs, or all of them, by their length."""
    chosen = range(len(pairs)) if numbers is None else numbers
    return sorted(chosen, key=lambda n: (len(pairs[n].target), len(pairs[n].source)))


def _packed(pairs: Sequence[Pair], numbers: Sequence[int], n_tokens: int) -> Iterator[list[int]]:
    """Cut a list of pairs into batches as large as `n_tokens` allows."""
    batch: list[int] = []
    longest_source = longest_target = 0
    for number in numbers:
        pair = pairs[number]
        longest_source = max(longest_source, len(pair.source))
        longest_target = max(longest_target, len(pair.target) + 1)
        if batch and (len(batch) + 1) * (longest_source + longest_target) > n_tokens:
            yield batch
            batch = []
            longest_source, longest_target = len(pair.source), len(pair.target) + 1
        batch.append(number)
    if batch:
        yield batch
