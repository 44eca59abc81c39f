"""The recipe `instruct`: a decoder that learns to answer prompts, from JSON lines of both.

    headlight train instruct --corpus answers.jsonl --out runs/stories-answers

A row is the start token, the prompt, a line break (``rows.separator``), the answer and the end
token. The loss counts the answer and the end token only, so the model does not learn to write
prompts (Ouyang et al. 2022, section 3.5, https://arxiv.org/abs/2203.02155).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headlight.lab.training.batches import Batch
from headlight.lab.training.config import LoopConfig, Recipe
from headlight.lab.training.examples import ExampleBatches, ExamplesConfig
from headlight.lab.training.instructions import Instruction, read_instructions
from headlight.lab.training.recipes import stories
from headlight.model.corpus import CorpusError
from headlight.model.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class InstructConfig(ExamplesConfig):
    """The settings of the batches; ``separator`` is between a prompt and its answer.

    Without one the answer goes on in the middle of a line.
    """

    separator: str = "\n"


def prompt_ids(
    prompts: Sequence[str], tokenizer: Tokenizer, separator: str = "\n"
) -> list[list[int]]:
    """Tokenize prompts as the model reads them: the start token before, the separator after."""
    encoded = tokenizer.encode_ids(
        [f"{prompt.rstrip()}{separator}" if separator else prompt for prompt in prompts]
    )
    return [[tokenizer.start_id, *ids] for ids in encoded]


class InstructBatches(ExampleBatches[Instruction, tuple[list[int], int]]):
    """The batches of the recipe: rows, each with the number of tokens of its prompt."""

    def encode(self, examples: Sequence[Instruction]) -> list[tuple[list[int], int]]:
        """As `ExampleBatches.encode`."""
        separator, end_id = self.material.config.separator, self.tokenizer.end_id
        prompts = prompt_ids([each.prompt for each in examples], self.tokenizer, separator)
        texts = [each.answer for each in examples]
        answers = self.tokenizer.encode_ids([*map(str.strip, texts)] if separator else texts)
        rows = [
            ([*prompt, *answer, end_id], len(prompt))
            for prompt, answer in zip(prompts, answers, strict=True)
        ]
        most = self.material.max_tokens
        for (row, _), instruction in zip(rows, examples, strict=True):
            if len(row) - 1 > most:
                raise CorpusError(
                    f"the prompt {instruction.prompt[:40]!r} has {len(row) - 1} tokens with its "
                    f"answer, more than the {most} that the model reads; shorten it"
                )
        return rows

    def pad(self, encoded: Sequence[tuple[list[int], int]]) -> Batch:
        """As `ExampleBatches.pad`."""
        rows, n_prompts = zip(*encoded, strict=True)
        return Batch.of_answers(rows, n_prompts, self.tokenizer.end_id)


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
    batches=InstructBatches,
    figures="headlight.lab.evaluation.instructions:InstructFigures",
    begins_from="stories",
)
