"""The recipe `fill`: a small encoder that fills in masked tokens.

    headlight train fill --corpus train.txt --out runs/fill

Some tokens of every row are hidden for the model to fill in: masked language modelling (Devlin et
al. 2019, BERT, section 3.1, https://arxiv.org/abs/1810.04805). Steps alternate between rows of
several lengths, because a user types a single sentence, and an encoder trained only on long rows
spreads its attention too thin there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headlight.lab.training.batches import Batch, Material, TextRows, generator_of, prepend
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.model.config import TransformerConfig
from headlight.model.corpus import CorpusError, TokenStream, lines, read_documents
from headlight.model.tokenizer import Tokenizer

HIDDEN = 0.8
REPLACED = 0.1

CONFIG = TransformerConfig(
    kind="encoder", n_layers=4, n_heads=6, d_model=192, d_ff=768, vocab_size=4096, max_tokens=128
)


class Masked(NamedTuple):
    """Rows with some tokens hidden.

    ``ids`` (row, token) is the model's input, ``targets`` (row, token) the original tokens, and
    ``is_counted`` (row, token) marks the chosen tokens, changed or not.
    """

    ids: Tensor
    targets: Tensor
    is_counted: Tensor


def mask_tokens(
    ids: Int[Tensor, "row token"],
    *,
    mask_id: int,
    vocab_size: int,
    is_maskable: Bool[Tensor, "row token"],
    generator: torch.Generator,
    share: float,
    special_ids: Collection[int],
    often_ids: Collection[int] = (),
    often_share: float = 0.0,
) -> Masked:
    """Choose tokens of every row and hide them.

    Of the chosen tokens 80 % become the mask token, 10 % an ordinary token drawn at random (in
    rare cases the same one) and 10 % stay, each token by its own draw. A row has `share` of its
    maskable tokens chosen, rounded up or down at random so that the mean is exact, but at least
    one if there is any. The paper draws from the whole vocabulary; special tokens are excluded
    here.

    Args:
        ids: the text; not changed.
        mask_id: the mask token.
        vocab_size: the size of the vocabulary.
        is_maskable: False for the special tokens of the text and its padding.
        generator: the source of randomness, on the device of `ids`.
        share: the share of maskable tokens to choose, in (0, 1].
        special_ids: tokens that are never drawn at random; the mask token is always among them.
        often_ids: tokens that are chosen more often, each with the probability `often_share`.
        often_share: in [0, 1].
    """
    is_chosen = _choose(is_maskable, share, generator)
    if often_ids:
        is_often = torch.isin(ids, torch.tensor(list(often_ids), device=ids.device)) & is_maskable
        luck = torch.rand(ids.shape, generator=generator, device=ids.device)
        is_chosen |= is_often & (luck < often_share)
    # Mask, replace or keep each chosen token.
    draw = torch.rand(ids.shape, generator=generator, device=ids.device)
    ordinary = _ordinary_ids(vocab_size, {mask_id, *special_ids}).to(ids)
    drawn = torch.randint(len(ordinary), ids.shape, generator=generator, device=ids.device)
    hidden = torch.where(draw < HIDDEN, mask_id, ids)
    hidden = torch.where(draw >= 1 - REPLACED, ordinary[drawn], hidden)
    return Masked(torch.where(is_chosen, hidden, ids), ids, is_chosen)


def _choose(
    is_maskable: Bool[Tensor, "row token"], share: float, generator: torch.Generator
) -> Bool[Tensor, "row token"]:
    """Choose a share of each row's maskable tokens."""
    noise = torch.rand(is_maskable.shape, generator=generator, device=is_maskable.device)
    luck = torch.rand(len(is_maskable), generator=generator, device=is_maskable.device)
    n_chosen = (share * is_maskable.sum(dim=1) + luck).floor().clamp(min=1)
    # The others rank last; choosing one changes nothing.
    rank = noise.masked_fill(~is_maskable, 2.0).argsort(dim=1).argsort(dim=1)
    return (rank < n_chosen[:, None]) & is_maskable


def _ordinary_ids(vocab_size: int, special_ids: Collection[int]) -> Int[Tensor, " ordinary"]:
    is_ordinary = torch.ones(vocab_size, dtype=torch.bool)
    is_ordinary[list(special_ids)] = False
    return is_ordinary.nonzero().flatten()


@dataclass(frozen=True, kw_only=True)
class FillConfig:
    """The settings of the batches.

    ``lengths`` are the tokens of a row after the start token; each step takes the next length.
    ``batch_tokens`` are the tokens of a batch, ``share`` is the share of masked tokens, and the
    last ``held_out`` rows of the longest length are for validation. ``words`` are masked with the
    probability ``words_share`` each: an encoder learns from a word only where it is masked.

    Raises:
        ValueError: a number is out of its range.
    """

    lengths: tuple[int, ...] = (16, 32, 64, 127)
    batch_tokens: int = 6144
    share: float = 0.2
    held_out: int = 64
    words: tuple[str, ...] = ()
    words_share: float = 0.8

    def __post_init__(self) -> None:
        for name in ("lengths", "words"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.lengths or min(self.lengths) < 2:
            raise ValueError(f"lengths {list(self.lengths)} must name rows of two tokens or more")
        if self.batch_tokens < max(self.lengths):
            raise ValueError(
                f"batch_tokens ({self.batch_tokens}) must hold one row of {max(self.lengths)}"
            )
        require(self, "share", 0 < self.share <= 1, "be above 0 and at most 1")
        require(self, "held_out", self.held_out >= 1, "be at least 1")
        require(self, "words_share", 0 <= self.words_share <= 1, "be from 0 to 1")


class FillBatches:
    """The batches of the recipe.

    Args:
        stream: the corpus.
        material: the rest; the tokenizer has a mask token.

    Raises:
        CorpusError: the corpus does not fill two of the longest rows.
        ValueError: rows are longer than the model's context, or a word is not one token.
    """

    def __init__(self, stream: TokenStream, material: Material[Any, FillConfig]) -> None:
        config, tokenizer, seed = material.config, material.tokenizer, material.seed
        max_tokens = material.max_tokens
        longest = max(config.lengths)
        if longest >= max_tokens:
            raise ValueError(f"lengths must lie below max_tokens ({max_tokens}), not {longest}")
        assert tokenizer.mask_id is not None
        self.mask_id, self.vocab_size = tokenizer.mask_id, tokenizer.vocab_size
        self.start_id, self.end_id = tokenizer.start_id, tokenizer.end_id
        self.config, self.seed = config, seed
        self.word_ids = [_word_id(word, tokenizer) for word in config.words]
        text = TextRows.cut(stream, length=longest, start_id=self.start_id, seed=seed)
        starts = text.hold_out(config.held_out)[1].starts
        self.held_out = stream.ids[starts[:, None] + torch.arange(longest)]
        end = int(starts[0])
        if end < longest:
            raise CorpusError(
                f"the corpus has {len(stream.ids)} tokens, of which {end} are left to train on; a "
                f"row takes {longest}"
            )
        trained = TokenStream(stream.ids[:end], stream.starts[stream.starts < end])
        self.rows = [
            TextRows.cut(trained, length=length, start_id=self.start_id, seed=seed)
            for length in config.lengths
        ]

    def batch(self, step: int) -> Batch:
        """Return rows of the step's length."""
        turn, kind = divmod(step, len(self.rows))
        rows = self.rows[kind]
        count = self.config.batch_tokens // rows.length
        text = rows.take(turn * count, count)
        ids = torch.cat([text.ids, text.targets[:, -1:]], dim=1)
        return self._mask(ids, generator_of(self.seed, step))

    def validation(self) -> list[Batch]:
        """Return the held-out rows, with the same masks every time."""
        ids = prepend(self.start_id, self.held_out)
        return [
            self._mask(part, generator_of(self.seed, number))
            for number, part in enumerate(ids.split(16))
        ]

    def _mask(self, ids: Tensor, generator: torch.Generator) -> Batch:
        masked = mask_tokens(
            ids,
            mask_id=self.mask_id,
            vocab_size=self.vocab_size,
            is_maskable=(ids != self.start_id) & (ids != self.end_id),
            share=self.config.share,
            special_ids=(self.start_id, self.end_id),
            often_ids=self.word_ids,
            often_share=self.config.words_share,
            generator=generator,
        )
        return Batch(ids=masked.ids, targets=masked.targets, is_counted=masked.is_counted)


def _word_id(word: str, tokenizer: Tokenizer) -> int:
    """Return the token of a word within a sentence."""
    (ids,) = tokenizer.encode_ids([f" {word}"])
    if len(ids) != 1:
        raise ValueError(f"words: {word!r} has {len(ids)} tokens; name words of one token")
    return ids[0]


def _batches(material: Material[Sequence[str], FillConfig]) -> FillBatches:
    return FillBatches(TokenStream.encode(material.corpus, material.tokenizer), material)


RECIPE = Recipe(
    model=CONFIG,
    rows=FillConfig(),
    loop=LoopConfig(steps=1400, decay=0.6),
    read=read_documents,
    texts=lines,
    batches=_batches,
    has_mask=True,
    figures="headlight.lab.evaluation.figures:FillFigures",
    is_usual=True,
)
