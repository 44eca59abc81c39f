"""The recipe `reward`: a decoder that learns to rate answers from --comparisons of two.

    headlight train reward --comparisons comparisons.jsonl --out runs/stories-reward

A language model (`--from`, or `stories`) gets a scalar head: r = w · x + b of the last layer's
output. The loss is −log σ(r_better − r_worse), read after the last token of each answer (Bradley
and Terry 1952; Ouyang et al. 2022, section 3.5, https://arxiv.org/abs/2203.02155).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from headlight.lab.training.batches import Batch, generator_of, is_held_out
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.lab.training.preference import (
    Comparison,
    ComparisonBatch,
    encode_comparisons,
    read_comparisons,
)
from headlight.lab.training.recipes import stories
from headlight.model.config import TransformerConfig
from headlight.model.corpus import CorpusError
from headlight.model.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """The settings of the batches.

    A batch has ``count`` comparisons. ``held_out`` is the share of the prompts whose comparisons
    are for validation; a hash of the prompt chooses them.

    Raises:
        ValueError: a number is out of its range.
    """

    count: int = 16
    held_out: float = 0.15

    def __post_init__(self) -> None:
        require(self, "count", self.count >= 1, "be at least 1")
        require(self, "held_out", 0 < self.held_out < 1, "lie in (0, 1)")


def divide(
    comparisons: Sequence[Comparison], held_out: float
) -> tuple[list[Comparison], list[Comparison]]:
    """Divide comparisons into those to train on and the held-out ones.

    Raises:
        CorpusError: one of the two is empty.
    """
    parts: tuple[list[Comparison], list[Comparison]] = ([], [])
    for comparison in comparisons:
        parts[is_held_out(comparison.prompt, held_out)].append(comparison)
    if not all(parts):
        raise CorpusError(
            f"of {len(comparisons)} comparisons {len(parts[1])} are held out; training needs some "
            "to train on and some to validate on, with different prompts"
        )
    return parts


class RewardBatches:
    """The batches of the recipe, in a new order in every epoch.

    Args:
        comparisons: all of them.
        tokenizer: of the trunk.
        max_tokens: the longest text that the model reads.
        config: the settings.
        seed: decides the order together with the epoch.

    Raises:
        CorpusError: there are too few comparisons, or one is too long.
    """

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        tokenizer: Tokenizer,
        max_tokens: int,
        config: RewardConfig,
        seed: int,
    ) -> None:
        trained, held_out = divide(comparisons, config.held_out)
        self.trained = encode_comparisons(trained, tokenizer, max_tokens)
        self.held_out = encode_comparisons(held_out, tokenizer, max_tokens)
        self.padding = tokenizer.end_id
        self.count = min(config.count, len(self.trained))
        self.seed = seed

    def batch(self, step: int) -> Batch:
        """Return the next comparisons of the epoch."""
        per_epoch = len(self.trained) // self.count
        epoch, place = divmod(step, per_epoch)
        order = torch.randperm(len(self.trained), generator=generator_of(self.seed, epoch))
        chosen = order[place * self.count : (place + 1) * self.count].tolist()
        return ComparisonBatch.pad([self.trained[n] for n in chosen], self.padding)

    def validation(self) -> list[Batch]:
        """Return the held-out comparisons."""
        return [
            ComparisonBatch.pad(self.held_out[first : first + 32], self.padding)
            for first in range(0, len(self.held_out), 32)
        ]


def _batches(
    comparisons: Sequence[Comparison],
    tokenizer: Tokenizer,
    model: TransformerConfig,
    rows: RewardConfig,
    seed: int,
) -> RewardBatches:
    return RewardBatches(comparisons, tokenizer, model.max_tokens, rows, seed)


def _texts(comparisons: Sequence[Comparison]) -> Iterable[str]:
    return (
        comparison.prompt + answer
        for comparison in comparisons
        for answer in (comparison.a, comparison.b)
    )


RECIPE = Recipe(
    model=replace(stories.CONFIG, has_reward=True),
    rows=RewardConfig(),
    loop=LoopConfig(
        steps=240,
        optimizer="adamw",
        learning_rate=2e-4,
        warmup=20,
        decay=0.5,
        balance_weight=0.01,
        validate_every=40,
    ),
    read=read_comparisons,
    texts=_texts,
    batches=_batches,
    figures="headlight.lab.evaluation.figures:RewardFigures",
    begins_from="stories",
    reads="comparisons",
)
