"""Chains of steps that a model writes for problems, and their marks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.model.arithmetic import Marking, Problem, mark
from headlight.model.generation.continuations import Continuations, sample_continuations
from headlight.model.tokenizer import Tokenizer
from headlight.model.transformer import Transformer


def solve(
    model: Transformer,
    tokenizer: Tokenizer,
    problems: Sequence[Problem],
    *,
    n_tokens: int,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
) -> tuple[Continuations, list[Marking]]:
    """Let a model write a chain for each problem, and mark the chains.

    Args:
        model: in eval mode.
        tokenizer: of characters.
        problems: with questions of one length.
        n_tokens: the most tokens of a chain.
        temperature: 0 for the likeliest tokens.
        generator: of the random numbers.
    """
    sampled = sample_continuations(
        model,
        prompt_rows(model, tokenizer, problems),
        n_tokens=n_tokens,
        stop_id=tokenizer.end_id,
        temperature=temperature,
        generator=generator,
    )
    return sampled, marks(tokenizer, problems, sampled)


def prompt_rows(
    model: Transformer, tokenizer: Tokenizer, problems: Sequence[Problem]
) -> Int[Tensor, "row token"]:
    """Tokenize questions of one length, start token first."""
    questions = tokenizer.encode_ids([problem.question for problem in problems])
    rows = [[tokenizer.start_id, *ids] for ids in questions]
    return torch.tensor(rows, device=model.vectors.device)


def marks(
    tokenizer: Tokenizer, problems: Sequence[Problem], sampled: Continuations
) -> list[Marking]:
    """Mark the chain of each row, which was written for the problem at the same place."""
    return [
        mark(problem, tokenizer.decode(ids), has_ended=has_ended)
        for problem, ids, has_ended in zip(
            problems, sampled.written(), sampled.has_ended.tolist(), strict=True
        )
    ]
