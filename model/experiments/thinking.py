"""More thinking for the same model: votes, and votes that stop when it is sure.

A model that ships multiplies two numbers of two digits in steps. For the same problems it gets

    majority     k chains, and the answer of most of them
    probable     the same chains, and the answer whose different chains have the most probability
    adaptive     chains until those that give one answer have together a probability above a bound;
                 above 1/2 no other answer can win, however many chains follow

and each is compared by the tokens that it has written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field

from headlight.model.arithmetic import Problem, split
from headlight.model.cancellation import check
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.experiments.chains import solve
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.shipped import shipped

BOUNDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
"""The probabilities at which adaptive voting stops."""
N_TOKENS = 30


class Thinking(Parameters):
    """The parameters of `thinking`."""

    model: Literal["sums-imitation", "sums", "sums-direct"] = Field(
        "sums-imitation", description="Before reinforcement, after it, or without steps."
    )
    n_problems: int = Field(40, ge=5, le=100, description="Problems that no run has seen.")
    n_chains: int = Field(12, ge=2, le=24, description="The most chains that vote.")
    temperature: float = Field(1.0, ge=0.1, le=2.0, description="Of all that is sampled.")


def cost(parameters: Thinking) -> Cost:
    """Estimate the cost of the chains."""
    seconds = parameters.n_problems * 0.01 * parameters.n_chains + 1
    return Cost(seconds=seconds, megabytes=150.0)


class Chain(NamedTuple):
    """One sampled chain."""

    text: str
    answer: int | None
    n_tokens: int
    probability: float


def run(parameters: Thinking) -> Iterator[Arrays]:
    """Sample the chains that vote."""
    checkpoint = shipped(parameters.model)
    problems = split().test[: parameters.n_problems]
    seeds = (1000 * parameters.seed + number for number in range(parameters.n_chains))
    rounds = [_sample(checkpoint, problems, seed, parameters) for seed in seeds]
    chains = [list(of) for of in zip(*rounds, strict=True)]  # by problem
    counts = range(1, parameters.n_chains + 1)
    answers = [problem.answer for problem in problems]
    yield {
        "question": np.array([problem.question for problem in problems]),
        "first_chain": np.array(chains[0][0].text.strip()),
        "n_chains": np.array(counts),
        "majority_tokens": np.array([_mean_tokens(chains, k) for k in counts]),
        **{
            f"{name}_right": np.array([_right(rule, answers, chains, k) for k in counts])
            for name, rule in RULES.items()
        },
        **_adaptive(answers, chains),
    }


def _sample(
    checkpoint: Checkpoint, problems: Sequence[Problem], seed: int, parameters: Thinking
) -> list[Chain]:
    """Write one chain for each problem."""
    check()
    sampled, marked = solve(
        checkpoint.model,
        checkpoint.tokenizer,
        problems,
        n_tokens=N_TOKENS,
        temperature=parameters.temperature,
        generator=torch.Generator().manual_seed(seed),
    )
    chances = (sampled.log_probs * sampled.is_sampled).sum(1).exp().tolist()
    lengths = sampled.is_sampled.sum(1).tolist()
    texts = [checkpoint.tokenizer.decode(ids) for ids in sampled.written()]
    return [
        Chain(text, marking.answer, length, chance)
        for text, marking, length, chance in zip(texts, marked, lengths, chances, strict=True)
    ]


def most_frequent(chains: Sequence[Chain]) -> int | None:
    """Return the answer of most chains, of equally frequent ones the first; None without any."""
    given = Counter(chain.answer for chain in chains if chain.answer is not None)
    return given.most_common(1)[0][0] if given else None


def most_probable(chains: Sequence[Chain]) -> int | None:
    """Return the answer whose different chains have together the greatest probability."""
    mass: dict[int, float] = {}
    for chain in {chain.text: chain for chain in chains}.values():
        if chain.answer is not None:
            mass[chain.answer] = mass.get(chain.answer, 0.0) + chain.probability
    return max(mass, key=lambda answer: mass[answer]) if mass else None


def _mean_tokens(chains: Sequence[Sequence[Chain]], k: int) -> float:
    return sum(chain.n_tokens for of in chains for chain in of[:k]) / len(chains)


RULES: dict[str, Callable[[Sequence[Chain], int], bool]] = {
    "majority": lambda chains, answer: most_frequent(chains) == answer,
    "probable": lambda chains, answer: most_probable(chains) == answer,
    "any": lambda chains, answer: any(chain.answer == answer for chain in chains),
}
"""Whether chains for a problem give its answer, by who chooses between them."""


def _right(
    rule: Callable[[Sequence[Chain], int], bool],
    answers: Sequence[int],
    chains: Sequence[Sequence[Chain]],
    k: int,
) -> float:
    """Return the share of problems for which the first k chains give the answer."""
    right = [rule(of[:k], answer) for answer, of in zip(answers, chains, strict=True)]
    return sum(right) / len(right)


def needed(chains: Sequence[Chain], bound: float) -> int:
    """Return after how many chains one answer's different chains have together this probability."""
    mass: Counter[int] = Counter()
    seen = set()
    for number, chain in enumerate(chains, start=1):
        if chain.answer is not None and chain.text not in seen:
            seen.add(chain.text)
            mass[chain.answer] += chain.probability  # type: ignore[assignment]
            if mass[chain.answer] > bound:
                return number
    return len(chains)


def _adaptive(answers: Sequence[int], chains: Sequence[Sequence[Chain]]) -> dict[str, np.ndarray]:
    """Vote until the model's own probabilities say that an answer is sure enough."""
    tokens, right, spent = [], [], []
    for bound in BOUNDS:
        used = [needed(of, bound) for of in chains]
        kept = [of[:k] for of, k in zip(chains, used, strict=True)]
        tokens.append(_mean_tokens(kept, len(chains[0])))
        right.append(_right(RULES["majority"], answers, kept, len(chains[0])))
        spent.append(used)
    return {
        "bound": np.array(BOUNDS),
        "adaptive_tokens": np.array(tokens),
        "adaptive_right": np.array(right),
        "adaptive_chains": np.array(spent),
    }


EXPERIMENT = Experiment(
    id="thinking",
    order=16,
    group="Learning",
    tab="More thinking",
    title="When more thinking helps",
    parameters=Thinking,
    run=run,
    cost=cost,
    way_out="choose fewer problems or chains",
)
