"""The recipe `reward`: a decoder that learns to rate answers from --comparisons of two.

    headlight train reward --comparisons comparisons.jsonl --out runs/stories-reward

A language model (`--from`, or `stories`) gets a scalar head: r = w · x + b of the last layer's
output. The loss is −log σ(r_better − r_worse), read after the last token of each answer (Bradley
and Terry 1952; Ouyang et al. 2022, section 3.5, https://arxiv.org/abs/2203.02155).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from headlight.lab.training.batches import Batch, Material, generator_of, is_held_out
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.lab.training.preference import (
    Comparison,
    ComparisonBatch,
    encode_comparisons,
    read_comparisons,
)
from headlight.lab.training.recipes import stories
from headlight.model.corpus import CorpusError

VALIDATION_EXAMPLES = 16


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
    for each in comparisons:
        parts[is_held_out(each.prompt, held_out)].append(each)
    if not all(parts):
        raise CorpusError(
            f"of {len(comparisons)} examples {len(parts[1])} are held out; training needs some to "
            "train on and some to validate on, with different prompts"
        )
    return parts


class RewardBatches:
    """The batches of the recipe: pairs of texts, the preferred one first, shuffled by epoch.

    Raises:
        CorpusError: there are too few comparisons, or one is too long.
    """

    def __init__(self, material: Material[Sequence[Comparison], Any]) -> None:
        self.material, self.tokenizer = material, material.tokenizer
        parts = divide(material.corpus, material.config.held_out)
        self.trained, self.held_out = (
            encode_comparisons(part, self.tokenizer, material.max_tokens) for part in parts
        )
        self.count = min(material.config.count, len(self.trained))

    def batch(self, step: int) -> Batch:
        """Return the next comparisons of the epoch."""
        epoch, place = divmod(step, len(self.trained) // self.count)
        order = torch.randperm(len(self.trained), generator=generator_of(self.material.seed, epoch))
        chosen = order[place * self.count : (place + 1) * self.count].tolist()
        return self._pad([self.trained[number] for number in chosen])

    def validation(self) -> list[Batch]:
        """Return the held-out comparisons."""
        starts = range(0, len(self.held_out), VALIDATION_EXAMPLES)
        return [self._pad(self.held_out[first : first + VALIDATION_EXAMPLES]) for first in starts]

    def _pad(self, encoded: Sequence[tuple[list[int], list[int]]]) -> Batch:
        return ComparisonBatch.pad(encoded, self.tokenizer.end_id)


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
    batches=RewardBatches,
    figures="headlight.lab.evaluation.figures:RewardFigures",
    begins_from="stories",
    reads="comparisons",
)
