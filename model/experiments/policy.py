"""One step of policy gradient: eight chains of a model that multiplies, and the step they ask for.

With a reward r of a whole chain and a baseline b, all weights of a copy of the model move by

    rate · 1/8 · Σ over chains (r − b) · Σ over tokens ∇ log π(token | the tokens before it)

(REINFORCE; Williams 1992, section 4). The logit of a written token is so pulled by
(r − b) · (1 − π): nothing is left to ask of a token that was certain.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field, field_validator
from torch import Tensor

from headlight.model.arithmetic import Marking, Problem, split
from headlight.model.cancellation import check
from headlight.model.experiments.chains import solve
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.shipped import shipped
from headlight.model.generation.continuations import Continuations
from headlight.model.transformer import Transformer

N_CHAINS, N_TOKENS = 8, 30
RATES = np.geomspace(1e-4, 0.1, 19)
_PRODUCT = re.compile(r"\s*([1-9][0-9])\s*[*x×·⋅]\s*([1-9][0-9])\s*=?\s*")


class Policy(Parameters):
    """The parameters of `policy`; the seed draws the chains."""

    question: str = Field(
        "38*94", min_length=1, max_length=20, description="A product of two numbers of two digits."
    )
    model: Literal["sums-imitation", "sums"] = Field(
        "sums-imitation", description="Before reinforcement, or after 1,300 steps of it."
    )
    reward: Literal["outcome", "process"] = Field(
        "outcome", description="1 for the right answer, or the share of right steps."
    )
    baseline: Literal["none", "mean", "group"] = Field(
        "mean", description="Taken from rewards; group: also divided by their deviation, as GRPO."
    )
    rate: float = Field(0.003, ge=1e-4, le=0.1, description="The size of the step.")

    @field_validator("question")
    @classmethod
    def _is_product(cls, question: str) -> str:
        if _PRODUCT.fullmatch(question) is None:
            raise ValueError(
                f"“{question}” is not a product of two numbers from 10 to 99, such as 38*94"
            )
        return question


def problem_of(question: str) -> Problem:
    """Read a product of two numbers of two digits that `Policy` has checked."""
    product = _PRODUCT.fullmatch(question)
    assert product is not None
    return Problem(int(product[1]), int(product[2]))


def run(parameters: Policy) -> Iterator[Arrays]:
    """Write chains, reward them, and make the step."""
    checkpoint, problem = shipped(parameters.model), problem_of(parameters.question)
    learner = copy.deepcopy(checkpoint.model)
    chains, marked = solve(
        learner,
        checkpoint.tokenizer,
        [problem] * N_CHAINS,
        n_tokens=N_TOKENS,
        temperature=1.0,
        generator=torch.Generator().manual_seed(parameters.seed),
    )
    rewards = np.array([rewards_of(marking)[parameters.reward] for marking in marked])
    advantages = advantages_of(rewards, parameters.baseline)
    right = np.array([marking.is_right for marking in marked])
    # 1. The gradient of the mean over the chains.
    log_probs = _log_probs(learner, chains)
    gain = (log_probs.sum(1) * torch.from_numpy(advantages)).mean()
    weights = list(learner.parameters())
    gradients = torch.autograd.grad(gain, weights, allow_unused=True, materialize_grads=True)
    start = [weight.detach().clone() for weight in weights]

    # 2. The step, by every rate of the curve, and by the chosen one.
    @torch.no_grad()
    def step(rate: float) -> Float[np.ndarray, "chain place"]:
        check()
        for weight, before, gradient in zip(weights, start, gradients, strict=True):
            weight.copy_(before + rate * gradient)
        moved: np.ndarray = _log_probs(learner, chains).numpy()
        return moved

    before = log_probs.detach().numpy()
    by_rate = [_chance(step(rate), chains, right) for rate in RATES]
    after = step(parameters.rate)
    is_written = chains.is_sampled.numpy()
    lengths, n_sums, solved = curriculum(parameters.model)
    yield {
        "chain": np.arange(1, N_CHAINS + 1),
        "token": _texts(chains, parameters.model),
        "answer": np.array([marking.steps[-1].text for marking in marked]),
        "is_right": right,
        "reward": rewards,
        "advantage": advantages,
        "pull": advantages[:, None] * (1 - np.exp(before)) * is_written,
        "before": np.exp(before) * is_written,
        "after": np.exp(after) * is_written,
        "chance": np.array([_chance(each, chains, right) for each in (before, after)]),
        "n_weights": np.array(sum(weight.numel() for weight in weights)),
        "rate": RATES,
        "chance_by_rate": np.array(by_rate),
        "kind": np.array(lengths),
        "n_sums": np.array(n_sums),
        "solved": np.array(solved),
    }


def rewards_of(marking: Marking) -> dict[str, float]:
    """Return both rewards of a chain: of its answer, and of its steps."""
    steps = [step.is_right for step in marking.steps]
    return {"outcome": float(marking.is_right), "process": sum(steps) / len(steps)}


def advantages_of(
    rewards: Float[np.ndarray, " chain"], baseline: str
) -> Float[np.ndarray, " chain"]:
    """Compare rewards with their mean, and, for ``group``, in deviations (Shao et al. 2024)."""
    if baseline == "none":
        return rewards
    centred: np.ndarray = rewards - rewards.mean()
    return centred / (rewards.std() + 1e-6) if baseline == "group" else centred


def _log_probs(model: Transformer, chains: Continuations) -> Float[Tensor, "chain place"]:
    """Return ln π of each written token; 0 after the end of a chain."""
    targets = chains.ids[:, chains.n_prompt :, None]
    logits = model.decode(chains.ids[:, :-1]).logits[:, chains.n_prompt - 1 :].double()
    log_probs: Tensor = logits.log_softmax(-1).gather(2, targets)[..., 0] * chains.is_sampled
    return log_probs


def _chance(
    log_probs: Float[np.ndarray, "chain place"], chains: Continuations, right: np.ndarray
) -> float:
    """Return the probability of the right chains among those written, each counted once."""
    whole = np.exp(log_probs.sum(1))
    return float(
        sum({tuple(chains.ids[at].tolist()): whole[at] for at in right.nonzero()[0]}.values())
    )


def _texts(chains: Continuations, name: str) -> np.ndarray:
    """Return the tokens, ■ for the end; empty after it."""
    rows = np.full(chains.log_probs.shape, "", dtype=object)
    for row, (ids, has_ended) in enumerate(zip(chains.written(), chains.has_ended, strict=True)):
        texts = [shipped(name).tokenizer.text_of(token) for token in ids] + ["■"] * int(has_ended)
        rows[row, : len(texts)] = texts
    return rows.astype(str)


# --- the order of a curriculum --------------------------------------------------------------------


def n_carries(problem: Problem) -> int:
    """Count the columns of the last sum that carry."""
    count = carry = 0
    rest = problem.products
    while any(rest):
        carry = (sum(part % 10 for part in rest) + carry) // 10
        count, rest = count + (carry > 0), [part // 10 for part in rest]
    return count


def kinds_of(problem: Problem) -> tuple[str, str]:
    """Name a problem's kind by the tokens of its solution, and by its carries."""
    n_tokens, carries = len(problem.solution()) + 1, n_carries(problem)
    return f"{n_tokens if n_tokens > 22 else '21–22'} tokens", f"{carries} carries"


@lru_cache(maxsize=2)
def curriculum(name: str) -> tuple[list[str], list[int], list[float]]:
    """Return the kinds of 700 unseen problems, how many each has, and the share that is solved."""
    problems: Sequence[Problem] = [*split().test, *split().valid]
    checkpoint = shipped(name)
    _, marked = solve(checkpoint.model, checkpoint.tokenizer, problems, n_tokens=N_TOKENS)
    kinds: dict[str, list[bool]] = {}
    for marking in marked:
        for kind in kinds_of(marking.problem):
            kinds.setdefault(kind, []).append(marking.is_right)
    ordered = sorted(kinds, key=lambda kind: (kind.endswith("carries"), kind))
    counts = [len(kinds[kind]) for kind in ordered]
    return ordered, counts, [float(np.mean(kinds[kind])) for kind in ordered]


EXPERIMENT = Experiment(
    id="policy",
    order=18,
    group="Learning",
    tab="Policy gradient",
    title="One step of policy gradient",
    parameters=Policy,
    run=run,
    cost=lambda _: Cost(seconds=4.0, megabytes=250.0),
    way_out="leave the parameters as they are",
)
