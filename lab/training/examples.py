"""Batches of examples with a prompt: some are held out, the others shuffled in every epoch.

The recipes `instruct`, `reward` and `dpo` say how examples become tokens, and tokens a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch

from headlight.lab.training.batches import Batch, Material, generator_of, is_held_out
from headlight.lab.training.config import require
from headlight.model.corpus import CorpusError

VALIDATION_EXAMPLES = 16
Encoded = TypeVar("Encoded")


@dataclass(frozen=True, kw_only=True)
class ExamplesConfig:
    """The settings of the batches.

    A batch has ``count`` examples. ``held_out`` is the share of the prompts whose examples are for
    validation; a hash of the prompt chooses them.

    Raises:
        ValueError: a number is out of its range.
    """

    count: int = 16
    held_out: float = 0.15

    def __post_init__(self) -> None:
        require(self, "count", self.count >= 1, "be at least 1")
        require(self, "held_out", 0 < self.held_out < 1, "lie in (0, 1)")


class Prompted(Protocol):
    """An example; all examples of one prompt are trained on, or none."""

    @property
    def prompt(self) -> str:
        """The text before the answer."""


Example = TypeVar("Example", bound=Prompted)


def divide(examples: Sequence[Example], held_out: float) -> tuple[list[Example], list[Example]]:
    """Divide examples into those to train on and the held-out ones.

    Raises:
        CorpusError: one of the two is empty.
    """
    parts: tuple[list[Example], list[Example]] = ([], [])
    for example in examples:
        parts[is_held_out(example.prompt, held_out)].append(example)
    if not all(parts):
        raise CorpusError(
            f"of {len(examples)} examples {len(parts[1])} are held out; training needs some to "
            "train on and some to validate on, with different prompts"
        )
    return parts


class ExampleBatches(Generic[Example, Encoded]):
    """The batches of a recipe; a subclass says what `encode` and `pad` do.

    Raises:
        CorpusError: there are too few examples, or one is too long.
    """

    def __init__(self, material: Material[Sequence[Example], Any]) -> None:
        self.material, self.tokenizer = material, material.tokenizer
        trained, held_out = divide(material.corpus, material.config.held_out)
        self.trained, self.held_out = self.encode(trained), self.encode(held_out)
        self.count = min(material.config.count, len(self.trained))

    def encode(self, examples: Sequence[Example]) -> list[Encoded]:
        """Tokenize examples.

        Raises:
            CorpusError: one is too long.
        """
        raise NotImplementedError

    def pad(self, encoded: Sequence[Encoded]) -> Batch:
        """Put tokenized examples into one batch."""
        raise NotImplementedError

    def batch(self, step: int) -> Batch:
        """Return the next examples of the epoch."""
        epoch, place = divmod(step, len(self.trained) // self.count)
        order = torch.randperm(len(self.trained), generator=generator_of(self.material.seed, epoch))
        chosen = order[place * self.count : (place + 1) * self.count].tolist()
        return self.pad([self.trained[number] for number in chosen])

    def validation(self) -> list[Batch]:
        """Return the held-out examples."""
        starts = range(0, len(self.held_out), VALIDATION_EXAMPLES)
        return [self.pad(self.held_out[first : first + VALIDATION_EXAMPLES]) for first in starts]
