"""More thinking for the same model: votes, votes that stop when it is sure, and search over steps.

A model that ships multiplies two numbers of two digits in steps. For the same problems it gets

    majority     k chains, and the answer of most of them
    probable     the same chains, and the answer whose different chains have the most probability
    adaptive     chains until those that give one answer have together a probability above a bound;
                 above 1/2 no other answer can win, however many chains follow
    beam         the partial chains that the model finds the most probable, after each step

and each is compared by the tokens that it has written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from headlight.model.arithmetic import Marking, Problem, mark, split
from headlight.model.cancellation import check
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.loading import ZOO, load_checkpoint
from headlight.model.experiments.chains import solve
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters, Quantity

BOUNDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
"""The probabilities at which adaptive voting stops."""
BEAMS = ((1, 2), (1, 4), (2, 2), (2, 4))
"""Kept partial chains, and the next steps that are tried for each."""
N_TOKENS = 30
MAX_ROUNDS = 8


class Thinking(Parameters):
    """The parameters of `thinking`."""

    model: Literal["sums-imitation", "sums", "sums-direct"] = Field(
        "sums-imitation",
        description="Before reinforcement, after it, or without steps.",
    )
    n_problems: int = Field(40, ge=5, le=100, description="Problems that no run has seen.")
    n_chains: int = Field(12, ge=2, le=24, description="The most chains that vote.")
    temperature: float = Field(1.0, ge=0.1, le=2.0, description="Of all that is sampled.")


def cost(parameters: Thinking) -> Cost:
    """Estimate the cost of the search and of the chains."""
    seconds = parameters.n_problems * (0.15 + 0.01 * parameters.n_chains) + 1
    return Cost(seconds=seconds, megabytes=150.0)


class Chain(NamedTuple):
    """One sampled chain."""

    text: str
    answer: int | None
    n_tokens: int
    probability: float


def run(parameters: Thinking) -> Iterator[Arrays]:
    """Sample the chains that vote, then search."""
    checkpoint = load_checkpoint(ZOO / parameters.model)
    problems = split().test[: parameters.n_problems]
    rounds = [_sample(checkpoint, problems, seed, parameters) for seed in _seeds(parameters, 0)]
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
    searcher = Searcher(checkpoint, parameters)
    found = [searcher.beam(problems, *sizes) for sizes in BEAMS]
    yield {
        "beam_tokens": np.array([tokens for tokens, _ in found]),
        "beam_right": np.array([right for _, right in found]),
    }


def _seeds(parameters: Thinking, first: int) -> list[int]:
    return [1000 * parameters.seed + first + number for number in range(parameters.n_chains)]


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


class Partial(NamedTuple):
    """The tokens of a chain up to the end of a step, and the logarithm of its probability."""

    ids: tuple[int, ...]
    is_done: bool
    log_prob: float


class Searcher:
    """Writes chains step by step, and keeps those that the model finds the most probable."""

    def __init__(self, checkpoint: Checkpoint, parameters: Thinking) -> None:
        self.checkpoint = checkpoint
        self.temperature = parameters.temperature
        self.generator = torch.Generator().manual_seed(parameters.seed)
        self.equals = checkpoint.tokenizer.encode_ids(["="])[0][0]
        self.end = checkpoint.tokenizer.end_id
        self.n_written = 0

    def beam(self, problems: Sequence[Problem], width: int, branch: int) -> tuple[float, float]:
        """Keep the best partial chains after each step; return tokens and right answers, as means.

        Args:
            problems: all with questions of one length.
            width: how many are kept.
            branch: the next steps that are tried for each.
        """
        self.n_written = 0
        kept = [[Partial(tuple(self._prompt(problem)), False, 0.0)] for problem in problems]
        for _ in range(MAX_ROUNDS):
            open_rows = [each for of in kept for each in of if not each.is_done]
            if not open_rows:
                break
            grown = iter(self._grow([each for each in open_rows for _ in range(branch)]))
            for number, of in enumerate(kept):
                candidates = {each.ids: each for each in of if each.is_done}
                for each in of:
                    if not each.is_done:
                        candidates |= {new.ids: new for new in (next(grown) for _ in range(branch))}
                best = sorted(candidates.values(), key=lambda each: -each.log_prob)
                kept[number] = best[:width]
        marked = [self._mark(problem, of[0]) for problem, of in zip(problems, kept, strict=True)]
        right = sum(marking.is_right for marking in marked) / len(marked)
        return self.n_written / len(problems), right

    def _prompt(self, problem: Problem) -> list[int]:
        tokenizer = self.checkpoint.tokenizer
        return [tokenizer.start_id, *tokenizer.encode_ids([problem.question])[0]]

    @torch.no_grad()
    def _grow(self, partial: Sequence[Partial]) -> list[Partial]:
        """Write the next step of each, to its equals sign or to the end of the chain."""
        rows = [list(each.ids) for each in partial]
        log_probs = [each.log_prob for each in partial]
        living = list(range(len(rows)))
        while living:
            log_policy = self._log_policy([rows[at] for at in living])
            drawn = torch.multinomial(log_policy.exp(), 1, generator=self.generator)[:, 0].tolist()
            self.n_written += len(living)
            for at, token, chances in zip(living, drawn, log_policy, strict=True):
                rows[at].append(token)
                log_probs[at] += chances[token].item()
            living = [at for at in living if not self._ends(rows[at])]
        return [
            Partial(tuple(row), row[-1] != self.equals, log_prob)
            for row, log_prob in zip(rows, log_probs, strict=True)
        ]

    def _ends(self, row: Sequence[int]) -> bool:
        return row[-1] in (self.equals, self.end) or len(row) >= self.checkpoint.config.max_tokens

    def _log_policy(self, rows: Sequence[Sequence[int]]) -> Float[Tensor, "row vocab"]:
        """Return the logarithm of each next token's probability; equal rows are computed once."""
        check()
        texts = list(dict.fromkeys(map(tuple, rows)))
        longest = max(map(len, texts))
        # What stands after a row's end changes nothing before it.
        padded = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts])
        x, _ = self.checkpoint.model.decoder(padded)
        last = x[torch.arange(len(texts)), [len(text) - 1 for text in texts]]
        logits = self.checkpoint.model.decoder.embedding.unembed(last[None])[0]
        place = {text: at for at, text in enumerate(texts)}
        chosen = logits[[place[tuple(row)] for row in rows]].float()
        log_policy: Tensor = (chosen / self.temperature).log_softmax(-1)
        return log_policy

    def _mark(self, problem: Problem, chosen: Partial) -> Marking:
        begin = len(self._prompt(problem))
        has_ended = chosen.ids[-1] == self.end
        ids = list(chosen.ids[begin : len(chosen.ids) - has_ended])
        return mark(problem, self.checkpoint.tokenizer.decode(ids), has_ended=has_ended)


EXPERIMENT = Experiment(
    id="thinking",
    order=15,
    group="Learning",
    tab="More thinking",
    title="When more thinking helps",
    parameters=Thinking,
    run=run,
    cost=cost,
    is_streamed=True,
    way_out="choose fewer problems or chains",
    quantities={
        "question": Quantity("problem", "The problems."),
        "first_chain": Quantity("", "The first chain for the first problem."),
        "n_chains": Quantity("n_chains", "Chains that vote, from 1.", unit="chains"),
        "majority_tokens": Quantity("n_chains", "Tokens for a problem, on average.", unit="tokens"),
        "majority_right": Quantity("n_chains", "Share of problems whose top answer is right."),
        "probable_right": Quantity("n_chains", "The same for the answer of most probability."),
        "any_right": Quantity("n_chains", "Share of problems with a right answer among chains."),
        "bound": Quantity("bound", "The probability at which adaptive voting stops."),
        "adaptive_tokens": Quantity("bound", "Tokens for a problem, on average.", unit="tokens"),
        "adaptive_right": Quantity("bound", "Share of right answers."),
        "adaptive_chains": Quantity("bound problem", "Chains of each problem.", unit="chains"),
        "beam_tokens": Quantity("beam", "Tokens of beam search, on average.", unit="tokens"),
        "beam_right": Quantity("beam", "Share of right answers, by width and branches."),
    },
    see="The model multiplies by writing a chain of steps, which is sampled, so a second chain "
    "may differ. More chains cost more tokens; what they gain depends on who chooses between "
    "them. Here a vote helps little: a model that is right now and then does not say the right "
    "answer most often, and one that is mostly right has chains that agree. The line of “any”"
    " is what a perfect judge would gain from the same chains. The model's own probability is"
    " a judge that costs nothing: add up the probabilities of the different chains that end "
    "in one answer, and take the answer with the largest sum. Before reinforcement that was "
    "right for 30 % of 300 problems, the vote for 22 %. Adaptive voting stops as soon as the "
    "model is sure. Search chooses between unfinished chains and is as good as its judge, here "
    "the same probability.",
    field="Reinforcement rewards chains that end in the right answer; the reinforced model has had "
    "it. Reasoning models are trained to write longer chains, and answers "
    "get better with the logarithm of the tokens spent. Voting, search and verifiers spend "
    "tokens in parallel instead. How many a problem needs is predicted from the model's own "
    "probabilities or hidden states, so that easy questions get short answers.",
    sources={
        "https://arxiv.org/abs/2203.11171": "Wang et al. 2023, Self-Consistency Improves Chain of "
        "Thought Reasoning",
        "https://arxiv.org/abs/2305.11860": "Aggarwal et al. 2023, Adaptive-Consistency",
        "https://arxiv.org/abs/2408.03314": "Snell et al. 2024, Scaling LLM Test-Time Compute "
        "Optimally",
    },
)
