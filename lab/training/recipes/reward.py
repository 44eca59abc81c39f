"""The recipe `reward`: a decoder that learns to rate answers from --comparisons of two.

    headlight train reward --comparisons comparisons.jsonl --out runs/stories-reward

A language model (`--from`, or `stories`) gets a scalar head: r = w · x + b of the last layer's
output. The loss is −log σ(r_better − r_worse), read after the last token of each answer (Bradley
and Terry 1952; Ouyang et al. 2022, section 3.5, https://arxiv.org/abs/2203.02155).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headlight.lab.training.batches import Batch
from headlight.lab.training.config import LoopConfig, Recipe
from headlight.lab.training.examples import ExampleBatches, ExamplesConfig
from headlight.lab.training.preference import (
    Comparison,
    ComparisonBatch,
    encode_comparisons,
    read_comparisons,
)
from headlight.lab.training.recipes import stories


class RewardBatches(ExampleBatches[Comparison, tuple[list[int], list[int]]]):
    """The batches of the recipe: pairs of texts, the preferred one first."""

    def encode(self, examples: Sequence[Comparison]) -> list[tuple[list[int], list[int]]]:
        """As `ExampleBatches.encode`."""
        return encode_comparisons(examples, self.tokenizer, self.material.max_tokens)

    def pad(self, encoded: Sequence[tuple[list[int], list[int]]]) -> Batch:
        """As `ExampleBatches.pad`."""
        return ComparisonBatch.pad(encoded, self.tokenizer.end_id)


def _texts(comparisons: Sequence[Comparison]) -> Iterable[str]:
    return (
        comparison.prompt + answer
        for comparison in comparisons
        for answer in (comparison.a, comparison.b)
    )


RECIPE = Recipe(
    model=replace(stories.CONFIG, has_reward=True),
    rows=ExamplesConfig(),
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
