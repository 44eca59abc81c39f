"""The recipe `translate`: an encoder–decoder that translates from one language to another.

    headlight train translate --corpus train.tsv --out runs/translate

The corpus is sentence pairs. Both languages share one vocabulary and one embedding matrix, so a
name or a number is the same token on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headlight.model.config import TransformerConfig
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.batches import (
    Batch,
    Pair,
    PairBatches,
    encode_pairs,
    is_held_out,
)
from headlight.model.training.config import LoopConfig, Recipe
from headlight.model.training.corpus import CorpusError, SentencePair, read_pairs

CONFIG = TransformerConfig(
    kind="encoder-decoder",
    n_layers=3,
    n_heads=6,
    d_model=192,
    d_ff=768,
    vocab_size=6000,
    max_tokens=128,
    dropout=0.1,
)


@dataclass(frozen=True, kw_only=True)
class TranslateConfig:
    """The settings of the batches.

    ``batch_tokens`` counts both sides with their padding; ``held_out`` is the share of sources
    for validation, chosen by a hash.

    Raises:
        ValueError: a number is out of its range.
    """

    batch_tokens: int = 4096
    held_out: float = 0.01

    def __post_init__(self) -> None:
        if self.batch_tokens < 1:
            raise ValueError(f"batch_tokens ({self.batch_tokens}) must be at least 1")
        if not 0 < self.held_out < 1:
            raise ValueError(f"held_out ({self.held_out}) must lie between 0 and 1")


class TranslateBatches:
    """The batches of the recipe.

    Args:
        pairs: the corpus.
        tokenizer: of both languages.
        max_tokens: pairs with a longer side are left out.
        config: the settings.
        seed: decides every batch together with the step.

    Raises:
        CorpusError: no pair is left to train on, or to validate on.
    """

    def __init__(
        self,
        pairs: Sequence[SentencePair],
        tokenizer: Tokenizer,
        max_tokens: int,
        config: TranslateConfig,
        seed: int,
    ) -> None:
        encoded = encode_pairs(
            [pair.source for pair in pairs], [pair.target for pair in pairs], tokenizer
        )
        sides: tuple[list[Pair], list[Pair]] = ([], [])
        for pair, ids in zip(pairs, encoded, strict=True):
            if max(len(ids.source), len(ids.target) + 1) <= max_tokens:
                sides[is_held_out(pair.source, config.held_out)].append(ids)
        if not all(sides):
            raise CorpusError(
                f"of {len(pairs)} pairs {sum(map(len, sides))} have at most {max_tokens} tokens a "
                f"side; with {100 * config.held_out:.6g}% held out none is left to "
                f"{'validate' if sides[0] else 'train'} on"
            )
        self.trained, self.held_out = (
            PairBatches(side, config.batch_tokens, tokenizer.start_id, tokenizer.end_id, seed)
            for side in sides
        )

    def batch(self, step: int) -> Batch:
        """Return pairs of similar length."""
        return self.trained.batch(step)

    def validation(self) -> list[Batch]:
        """Return the held-out pairs."""
        return self.held_out.in_order()


def _texts(pairs: Sequence[SentencePair]) -> Iterable[str]:
    for pair in pairs:
        yield pair.source
        yield pair.target


RECIPE = Recipe(
    model=CONFIG,
    rows=TranslateConfig(),
    loop=LoopConfig(steps=5600, decay=0.6, smoothing=0.1, validate_every=200, save_every=100),
    read=read_pairs,
    texts=_texts,
    batches=lambda pairs, tokenizer, model, rows, seed: TranslateBatches(
        pairs, tokenizer, model.max_tokens, rows, seed
    ),
)
