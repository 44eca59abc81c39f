"""Chains of steps that a model writes for problems, their marks, and a prediction of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.model.arithmetic import Marking, Problem, mark
from headlight.model.generation.continuations import Continuations, sample_continuations
from headlight.model.tokenizer import Tokenizer
from headlight.model.transformer import Transformer

# The share of the value head's statistics that each step keeps, and its ridge.
MEMORY, RIDGE = 0.9, 1.0


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


class ValueHead:
    """Predicts the reward of a chain from the last layer's output, by ridge regression.

    Each step adds its tokens to the regression, whose older part fades. The trunk gets no gradient
    from it.
    """

    def __init__(self, width: int) -> None:
        self.tensors = {"gram": torch.zeros(width + 1, width + 1), "moment": torch.zeros(width + 1)}

    def predict(self, x: Float[Tensor, "row token d_model"]) -> Float[Tensor, "row token"]:
        """Predict the reward at every token; 0 before the first fit."""
        gram = self.tensors["gram"] + RIDGE * torch.eye(len(self.tensors["gram"]))
        rewards: Tensor = _with_one(x) @ torch.linalg.solve(gram, self.tensors["moment"])
        return rewards

    def fit(
        self,
        x: Float[Tensor, "row token d_model"],
        rewards: Float[Tensor, " row"],
        weights: Float[Tensor, "row token"],
    ) -> None:
        """Add the tokens of some chains, each with its weight and the reward of its chain."""
        features = _with_one(x).flatten(0, 1)
        weighted = features * weights.view(-1, 1)
        targets = rewards[:, None].expand(weights.shape).flatten()
        for name, product in (("gram", weighted.T @ features), ("moment", weighted.T @ targets)):
            self.tensors[name].mul_(MEMORY).add_(product)


def _with_one(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)
