"""The recipe `instruct`: a decoder that learns to answer prompts, from JSON lines of both.

    headlight train instruct --corpus answers.jsonl --out runs/stories-answers

A row is the start token, the prompt, a line break (``rows.separator``), the answer and the end
token. The loss counts
the answer and the end token only, so the model does not learn to write prompts (Ouyang et al. 2022,
section 3.5, https://arxiv.org/abs/2203.02155).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from headlight.lab.training.batches import Batch, generator_of, is_held_out
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.lab.training.instructions import Instruction, read_instructions
from headlight.lab.training.recipes import stories
from headlight.model.config import TransformerConfig
from headlight.model.corpus import CorpusError
from headlight.model.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class InstructConfig:
    """The settings of the batches.

    A batch has ``count`` instructions. ``held_out`` is the share of the prompts that are for
    validation; a hash of the prompt chooses them. ``separator`` is between a prompt and its answer;
    without one the answer goes on in the middle of a line.

    Raises:
        ValueError: a number is out of its range.
    """

    count: int = 16
    held_out: float = 0.15
    separator: str = "\n"

    def __post_init__(self) -> None:
        require(self, "count", self.count >= 1, "be at least 1")
        require(self, "held_out", 0 < self.held_out < 1, "lie in (0, 1)")


def divide(
    instructions: Sequence[Instruction], held_out: float
) -> tuple[list[Instruction], list[Instruction]]:
    """Divide instructions into those to train on and the held-out ones.

    Raises:
        CorpusError: one of the two is empty.
    """
    parts: tuple[list[Instruction], list[Instruction]] = ([], [])
    for instruction in instructions:
        parts[is_held_out(instruction.prompt, held_out)].append(instruction)
    if not all(parts):
        raise CorpusError(
            f"of {len(instructions)} instructions {len(parts[1])} are held out; training needs "
            "some to train on and some to validate on, with different prompts"
        )
    return parts


def prompt_ids(
    prompts: Sequence[str], tokenizer: Tokenizer, separator: str = "\n"
) -> list[list[int]]:
    """Tokenize prompts as the model reads them: the start token before, the separator after."""
    encoded = tokenizer.encode_ids(
        [f"{prompt.rstrip()}{separator}" if separator else prompt for prompt in prompts]
    )
    return [[tokenizer.start_id, *ids] for ids in encoded]


class InstructBatches:
    """The batches of the recipe, in a new order in every epoch.

    Args:
        instructions: all of them.
        tokenizer: of the model.
        max_tokens: the longest row that the model reads.
        config: the settings.
        seed: decides the order together with the epoch.

    Raises:
        CorpusError: there are too few instructions, or one is too long.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        tokenizer: Tokenizer,
        max_tokens: int,
        config: InstructConfig,
        seed: int,
    ) -> None:
        self.end_id, self.seed, self.separator = tokenizer.end_id, seed, config.separator
        self.trained, self.held_out = (
            self._encoded(part, tokenizer, max_tokens)
            for part in divide(instructions, config.held_out)
        )
        self.count = min(config.count, len(self.trained))

    def _encoded(
        self, instructions: Sequence[Instruction], tokenizer: Tokenizer, max_tokens: int
    ) -> list[tuple[list[int], int]]:
        """Return each row, and the number of tokens of its prompt."""
        prompts = prompt_ids([each.prompt for each in instructions], tokenizer, self.separator)
        texts = [each.answer for each in instructions]
        answers = tokenizer.encode_ids([*map(str.strip, texts)] if self.separator else texts)
        rows = [
            ([*prompt, *answer, self.end_id], len(prompt))
            for prompt, answer in zip(prompts, answers, strict=True)
        ]
        for (row, _), instruction in zip(rows, instructions, strict=True):
            if len(row) - 1 > max_tokens:
                raise CorpusError(
                    f"the prompt {instruction.prompt[:40]!r} has {len(row) - 1} tokens with its "
                    f"answer, more than the {max_tokens} that the model reads; shorten it"
                )
        return rows

    def _padded(self, rows: Sequence[tuple[list[int], int]]) -> Batch:
        longest = max(len(row) for row, _ in rows)
        ids = torch.tensor([[*row, *[self.end_id] * (longest - len(row))] for row, _ in rows])
        places = torch.arange(1, longest)  # of the targets, in the row
        lengths = torch.tensor([len(row) for row, _ in rows])[:, None]
        starts = torch.tensor([n_prompt for _, n_prompt in rows])[:, None]
        return Batch.of_rows(ids, (places >= starts) & (places < lengths))

    def batch(self, step: int) -> Batch:
        """Return the next instructions of the epoch."""
        epoch, place = divmod(step, len(self.trained) // self.count)
        order = torch.randperm(len(self.trained), generator=generator_of(self.seed, epoch))
        chosen = order[place * self.count : (place + 1) * self.count].tolist()
        return self._padded([self.trained[number] for number in chosen])

    def validation(self) -> list[Batch]:
        """Return the held-out instructions."""
        starts = range(0, len(self.held_out), 16)
        return [self._padded(self.held_out[first : first + 16]) for first in starts]


def _batches(
    instructions: Sequence[Instruction],
    tokenizer: Tokenizer,
    model: TransformerConfig,
    rows: InstructConfig,
    seed: int,
) -> InstructBatches:
    return InstructBatches(instructions, tokenizer, model.max_tokens, rows, seed)


def _texts(instructions: Sequence[Instruction]) -> Iterable[str]:
    return (text for each in instructions for text in (f"{each.prompt}\n", each.answer))


RECIPE = Recipe(
    model=stories.CONFIG,
    rows=InstructConfig(),
    loop=LoopConfig(
        steps=300,
        optimizer="adamw",
        learning_rate=3e-4,
        warmup=20,
        decay=0.5,
        balance_weight=0.01,
        validate_every=50,
        best=True,
    ),
    read=read_instructions,
    texts=_texts,
    batches=_batches,
    figures="headlight.lab.evaluation.instructions:InstructFigures",
    begins_from="stories",
)
