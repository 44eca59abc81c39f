"""The recipe `translate`: an encoder–decoder; a corpus is sentence pairs: source, tab, target.

    headlight train translate --corpus train.tsv --out runs/translate

The corpus is sentence pairs. Both languages share one vocabulary and one embedding matrix, so a
name or a number is the same token on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headlight.lab.training.augmentation import Augmentation, AugmentationConfig
from headlight.lab.training.batches import (
    Batch,
    Material,
    Pair,
    PairBatches,
    encode_pairs,
    is_held_out,
)
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.model.config import TransformerConfig
from headlight.model.corpus import CorpusError, SentencePair, read_pairs

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
    for validation, chosen by a hash. ``augmentation`` is the share of pairs altered in each epoch;
    the held-out ones are not.

    Raises:
        ValueError: a number is out of its range.
    """

    batch_tokens: int = 4096
    held_out: float = 0.01
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)

    def __post_init__(self) -> None:
        require(self, "batch_tokens", self.batch_tokens >= 1, "be at least 1")
        require(self, "held_out", 0 < self.held_out < 1, "lie between 0 and 1")


class TranslateBatches:
    """The batches of the recipe; pairs with a side that is too long for the model are left out.

    Raises:
        CorpusError: no pair is left to train on, or to validate on.
    """

    def __init__(self, material: Material[Sequence[SentencePair], TranslateConfig]) -> None:
        pairs, config, max_tokens = material.corpus, material.config, material.max_tokens
        tokenizer, seed = material.tokenizer, material.seed
        encoded = encode_pairs(*_sides(pairs), tokenizer)
        sides: tuple[list[Pair], list[Pair]] = ([], [])
        texts: tuple[list[SentencePair], list[SentencePair]] = ([], [])
        for pair, ids in zip(pairs, encoded, strict=True):
            if _fits(ids, max_tokens):
                side = is_held_out(pair.source, config.held_out)
                sides[side].append(ids)
                texts[side].append(pair)
        if not all(sides):
            raise CorpusError(
                f"of {len(pairs)} pairs {sum(map(len, sides))} have at most {max_tokens} tokens a "
                f"side; with {100 * config.held_out:.6g}% held out none is left to "
                f"{'validate' if sides[0] else 'train'} on"
            )
        augmentation = Augmentation(texts[False], config.augmentation, seed)

        def altered(epoch: int) -> dict[int, Pair]:
            changes = augmentation.epoch(epoch)
            encoded = encode_pairs(*_sides(changes.values()), tokenizer)
            return {
                index: ids
                for index, ids in zip(changes, encoded, strict=True)
                if _fits(ids, max_tokens)
            }

        arguments = (config.batch_tokens, tokenizer.start_id, tokenizer.end_id, seed)
        self.trained = PairBatches(sides[False], *arguments, altered)
        self.held_out = PairBatches(sides[True], *arguments)

    def batch(self, step: int) -> Batch:
        """Return pairs of similar length."""
        return self.trained.batch(step)

    def validation(self) -> list[Batch]:
        """Return the held-out pairs."""
        return self.held_out.in_order()


def _fits(pair: Pair, max_tokens: int) -> bool:
    return max(len(pair.source), len(pair.target) + 1) <= max_tokens


def _sides(pairs: Iterable[SentencePair]) -> tuple[list[str], list[str]]:
    listed = list(pairs)
    return [pair.source for pair in listed], [pair.target for pair in listed]


def _texts(pairs: Sequence[SentencePair]) -> Iterable[str]:
    for pair in pairs:
        yield pair.source
        yield pair.target


RECIPE = Recipe(
    model=CONFIG,
    rows=TranslateConfig(
        augmentation=AugmentationConfig(
            joined=0.04, renamed=0.5, lowered=0.05, unstopped=0.02, capitals=0.02
        )
    ),
    loop=LoopConfig(steps=5600, decay=0.6, smoothing=0.1, validate_every=200, save_every=100),
    read=read_pairs,
    texts=_texts,
    batches=TranslateBatches,
    figures="headlight.lab.evaluation.figures:TranslateFigures",
    is_usual=True,
)
