"""The recipe `reasoning`: a small decoder that learns to multiply, step by step; no corpus.

    headlight train reasoning --out runs/sums
    headlight train reasoning --out runs/direct --set rows.form=direct --set rows.imitation=1590

    headlight train reasoning --out runs/hard --set rows.second_digits=3 --set model.max_tokens=64

It makes its problems itself and takes no corpus. Tokens are characters. The first
``rows.imitation`` steps learn from solutions written out by the rule; the steps after them are
reinforcement: the model writes its own chains, and is told of each whether its answer is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from headlight.lab.training.batches import Batch, Material, generator_of
from headlight.lab.training.config import BATCH_SETTINGS, LoopConfig, Recipe, require
from headlight.lab.training.reinforcement import ReasoningLoop, ReinforcementConfig
from headlight.model.arithmetic import FORMS, Problem, Split, single_products, split
from headlight.model.config import TransformerConfig, require_known
from headlight.model.corpus import CorpusError
from headlight.model.tokenizer import Tokenizer

# The 256 bytes and two special tokens: byte-level BPE without a merge.
N_CHARACTERS = 258
CONFIG = TransformerConfig(
    n_layers=4,
    n_heads=4,
    d_model=128,
    d_ff=512,
    vocab_size=N_CHARACTERS,
    max_tokens=48,
    positional="learned",
)


@dataclass(frozen=True, kw_only=True)
class ReasoningConfig(ReinforcementConfig):
    """The settings of imitation, and those of reinforcement.

    Args:
        form: of the solutions; a name of `arithmetic.FORMS`.
        count: solutions in a batch of imitation.
        second_digits: digits of the second factor, 2 or 3; chains of 3 need more of
            ``model.max_tokens``.
        curriculum: the first steps of imitation, whose solutions are products of two digits and
            one.

    Raises:
        ValueError: a number is out of its range, or a name is unknown.
    """

    form: str = "chain"
    count: int = 64
    curriculum: int = 0
    second_digits: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "count", 1 <= self.count <= 2**16, "lie between 1 and 65,536")
        require(self, "curriculum", self.curriculum >= 0, "be at least 0")
        require(self, "second_digits", self.second_digits in (2, 3), "be 2 or 3")
        require_known("form", self.form, FORMS)


@dataclass(frozen=True)
class ReasoningBatches:
    """The batches of imitation, and the problems of reinforcement."""

    config: ReasoningConfig
    tokenizer: Tokenizer
    seed: int

    @property
    def _split(self) -> Split:
        return split(self.config.second_digits)

    def batch(self, step: int) -> Batch:
        """Return the solutions of a step of imitation."""
        is_easy = step < self.config.curriculum
        known = single_products() if is_easy else self._split.train
        return self._solutions(self._draw(known, self.config.count, step))

    def asked(self, step: int, draw: int = 0) -> list[Problem]:
        """Return the training problems of a draw of a step of reinforcement."""
        return self._draw(self._split.train, self.config.problems, step, *[draw] * bool(draw))

    def validation(self) -> list[Batch]:
        """Return the solutions of the validation problems."""
        return [self._solutions(self._split.valid)]

    @property
    def valid_problems(self) -> Sequence[Problem]:
        """The problems of validation."""
        return self._split.valid

    @property
    def n_tokens(self) -> int:
        """The most tokens that a chain may have: four more than the longest solution."""
        longest = Problem(99, 10**self.config.second_digits - 1)
        return len(longest.solution(self.config.form)) + 5

    def _draw(self, problems: Sequence[Problem], count: int, *key: int) -> list[Problem]:
        numbers = torch.randint(len(problems), (count,), generator=generator_of(self.seed, *key))
        return [problems[number] for number in numbers.tolist()]

    def _solutions(self, problems: Sequence[Problem]) -> Batch:
        """Make rows of question, solution and end token, in which the question does not count."""
        tokenizer = self.tokenizer
        questions = tokenizer.encode_ids([each.question for each in problems])
        solutions = tokenizer.encode_ids([each.solution(self.config.form) for each in problems])
        rows = [
            [tokenizer.start_id, *question, *solution, tokenizer.end_id]
            for question, solution in zip(questions, solutions, strict=True)
        ]
        n_prompts = [1 + len(question) for question in questions]
        return Batch.of_answers(rows, n_prompts, tokenizer.end_id)


def _read(paths: Sequence[Path]) -> None:
    if paths:
        raise CorpusError("reasoning makes its own problems; leave out --corpus")


def _batches(material: Material[None, ReasoningConfig]) -> ReasoningBatches:
    rows, n_tokens = material.config, material.tokenizer.vocab_size
    if n_tokens != N_CHARACTERS:
        raise ValueError(
            f"the vocabulary has {n_tokens} tokens; reasoning reads single characters, "
            f"{N_CHARACTERS} tokens"
        )
    batches = ReasoningBatches(rows, material.tokenizer, material.seed)
    longest = len(Problem(99, 10**rows.second_digits - 1).question) + 1 + batches.n_tokens
    if longest > material.max_tokens:
        raise ValueError(
            f"chains of {longest} tokens are longer than max_tokens ({material.max_tokens}); add "
            f"--set model.max_tokens={2 ** (longest - 1).bit_length()}"
        )
    return batches


def _unread(rows: ReasoningConfig) -> Sequence[str]:
    """Return the settings of the loop that REINFORCE from the first step does not read."""
    return () if rows.imitation or rows.method == "expert" else BATCH_SETTINGS


RECIPE = Recipe(
    model=CONFIG,
    rows=ReasoningConfig(),
    loop=LoopConfig(steps=1590, learning_rate=4e-3, warmup=50, validate_every=20, save_every=20),
    read=_read,
    texts=lambda corpus: (),
    batches=_batches,
    figures="headlight.lab.evaluation.figures:ReasoningFigures",
    reads="",
    make_loop=ReasoningLoop,
    is_sampled=True,
    unread=_unread,
)
