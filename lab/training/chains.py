"""Chains of steps that a model writes while it is reinforced, with their rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from headlight.lab.training.policy_gradient import sample_tree
from headlight.model.arithmetic import Marking, Problem
from headlight.model.experiments.chains import prompt_rows
from headlight.model.generation.continuations import Continuations
from headlight.model.tokenizer import Tokenizer
from headlight.model.transformer import Transformer


def write_chains(
    model: Transformer,
    tokenizer: Tokenizer,
    problems: Sequence[Problem],
    *,
    n_chains: int,
    n_tokens: int,
    temperature: float,
    generator: torch.Generator | None,
) -> tuple[Continuations, Tensor]:
    """Let a model write several chains for each problem.

    Args:
        model: in eval mode.
        tokenizer: of characters.
        problems: with questions of one length.
        n_chains: the chains of a problem.
        n_tokens: the most tokens of a chain.
        temperature: positive.
        generator: of the random numbers.

    Returns:
        The different chains with their counts, and the number of each one's problem.
    """
    sampled = sample_tree(
        model,
        prompt_rows(model, tokenizer, problems),
        n_samples=n_chains,
        n_tokens=n_tokens,
        stop_id=tokenizer.end_id,
        temperature=temperature,
        generator=generator,
    )
    return sampled, (sampled.row_counts.cumsum(0) - 1) // n_chains


def reward_of(marking: Marking) -> float:
    """Return the reward of a chain: 1 for the right answer, else 0."""
    return float(marking.is_right)


class WrittenChains(NamedTuple):
    """The chains that a model has written for some problems; a row for each different chain.

    ``marked`` and ``rewards`` (row) are those of each chain, ``advantages`` (row, 1).
    ``is_used`` (row): whether the chain is learnt from. ``problems`` (row): the number of
    its problem.
    """

    sampled: Continuations
    marked: Sequence[Marking]
    rewards: Tensor
    advantages: Tensor
    is_used: Tensor
    problems: Tensor

    @property
    def used_problems(self) -> Tensor:
        """The numbers of the problems with a chain that is learnt from, ascending."""
        problems: Tensor = self.problems[self.is_used].unique()
        return problems

    def figures(self) -> dict[str, float]:
        """Compute the means over all chains, equal ones counted as often as they were written.

        Returns:
            ``reward``; ``right`` and ``wrong_reason``: the share of right answers, and of those
            with a wrong step; ``used``: the share learnt from; ``entropy``: the mean −log π of a
            token, in nats; ``length`` in tokens; ``distinct``: the share of different chains.
        """
        counts = self.sampled.row_counts
        n_chains, n_tokens = counts.sum(), self.sampled.weights.sum()
        surprise = -(self.sampled.log_probs * self.sampled.weights).sum()
        return {
            "reward": float((self.rewards * counts).sum() / n_chains),
            "right": _share([each.is_right for each in self.marked], counts),
            "wrong_reason": _share(
                [each.is_right_for_wrong_reason for each in self.marked], counts
            ),
            "used": float((self.is_used * counts).sum() / n_chains),
            "entropy": float(surprise / n_tokens),
            "length": float(n_tokens / n_chains),
            "distinct": float(len(counts) / n_chains),
        }


def _share(marks: Sequence[bool], counts: Tensor) -> float:
    return float((torch.tensor(marks) * counts.cpu()).sum() / counts.sum())
