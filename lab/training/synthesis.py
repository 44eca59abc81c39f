"""Synthetic data: many answers of a teacher to each prompt, of which a rule or a reward keeps some.

A student that learns from the kept ones (`recipes.instruct`) moves towards what the filter prefers,
without a policy gradient (Zelikman et al. 2022, https://arxiv.org/abs/2203.14465; Dong et al. 2023,
https://arxiv.org/abs/2304.06767, keep the answer of the highest reward).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.lab.training.batches import generator_of
from headlight.lab.training.preference import line_end, rule_score
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.generation.continuations import Continuations, sample_continuations

ROWS_AT_ONCE = 64
Score = Callable[[Continuations, Sequence[str]], Sequence[float]]
"""Scores sampled answers, given as tokens and as texts."""


class Answer(NamedTuple):
    """An answer of the teacher, and its score; 0 without a filter."""

    prompt: str
    answer: str
    score: float


def by_rule(_: Continuations, texts: Sequence[str]) -> list[float]:
    """Score answers by the points of the rule."""
    return [float(rule_score(text)) for text in texts]


def by_nothing(_: Continuations, texts: Sequence[str]) -> list[float]:
    """Score all answers alike."""
    return [0.0] * len(texts)


def synthesize(
    teacher: Checkpoint,
    prompts: Sequence[Int[Tensor, " token"]],
    *,
    samples: int,
    score: Score,
    least: float | None = None,
    n_tokens: int = 40,
    temperature: float = 1.0,
    seed: int = 0,
) -> Iterator[tuple[Answer | None, int]]:
    """Answer each prompt several times and keep the best answer, if it is good enough.

    Blank answers are never kept. Of equal scores the first is kept.

    Args:
        teacher: the decoder that answers.
        prompts: start token included; those of one length are answered together.
        samples: the answers to each prompt.
        score: rates them.
        least: the score that an answer needs; None: the best of each prompt is kept.
        n_tokens: the most tokens of an answer, which ends with its line.
        temperature: of the samples.
        seed: decides the samples.

    Yields:
        The answer to keep of each prompt, or None, and how many answers were good enough.
    """
    tokenizer = teacher.tokenizer
    stop_id, generator = line_end(tokenizer), generator_of(seed)
    by_length: dict[int, list[Tensor]] = {}
    for prompt in prompts:
        by_length.setdefault(len(prompt), []).append(prompt)
    for group in by_length.values():
        for part in torch.stack(group).split(max(1, ROWS_AT_ONCE // samples)):
            sampled = sample_continuations(
                teacher.model,
                part.repeat_interleave(samples, dim=0).to(teacher.device),
                n_tokens=n_tokens,
                stop_id=stop_id,
                temperature=temperature,
                generator=generator,
            )
            texts = [tokenizer.decode(written) for written in sampled.written()]
            scores = score(sampled, texts)
            for number, prompt in enumerate(part.tolist()):
                rows = range(number * samples, (number + 1) * samples)
                good = [
                    row
                    for row in rows
                    if texts[row].strip() and (least is None or scores[row] >= least)
                ]
                best = max(good, key=lambda row: scores[row], default=None)
                kept = None
                if best is not None:
                    kept = Answer(tokenizer.decode(prompt), texts[best], float(scores[best]))
                yield kept, len(good)
