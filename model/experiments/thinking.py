"""More thinking for the same model: votes, votes that stop when it is sure, and search over steps.

A model that ships multiplies two numbers of two digits in steps. For the same problems it gets

    majority     k chains, and the answer of most of them
    probable     the same chains, and the answer whose different chains have the most probability
    adaptive     chains until those that give one answer have together a probability above a bound;
                 above 1/2 no other answer can win, however many chains follow
    beam         the best partial chains after each step, by a value head
    best-first   always the best partial chain of all, by the same value head

and each is compared by the tokens that it has written. The value head is a ridge regression from
the model's last layer to whether a chain's answer is right, fitted on chains for training problems.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
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
from headlight.model.experiments.chains import ValueHead, solve
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters, Quantity

BOUNDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
"""The probabilities at which adaptive voting stops."""
BEAMS = ((1, 2), (1, 4), (2, 2), (2, 4))
"""Kept partial chains, and the next steps that are tried for each."""
BRANCHES = (2, 4)
"""Next steps that best-first search tries for a partial chain."""
CHAINS_TRAINED = 8
LAST = 3
"""Steps of a chain; the last one ends it."""
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
    n_trained: int = Field(
        160, ge=4, le=400, description="Training problems that the value head is fitted on."
    )


def cost(parameters: Thinking) -> Cost:
    """Estimate the cost of the search, of the chains, and of the problems that are trained on."""
    seconds = parameters.n_problems * (0.25 + 0.01 * parameters.n_chains)
    seconds += 0.03 * parameters.n_trained + 1
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
    counts = np.arange(1, parameters.n_chains + 1)
    yield {
        "question": np.array([problem.question for problem in problems]),
        "first_chain": np.array(chains[0][0].text.strip()),
        "n_chains": counts,
        "majority_tokens": np.array([_mean_tokens(chains, k) for k in counts.tolist()]),
        "majority_right": np.array([_majority_right(problems, chains, k) for k in counts.tolist()]),
        "probable_right": np.array([_probable_right(problems, chains, k) for k in counts.tolist()]),
        "any_right": np.array([_any_right(problems, chains, k) for k in counts.tolist()]),
        "sure": np.array([of[0].probability for of in chains]),
        "sure_right": np.array(
            [of[0].answer == each.answer for of, each in zip(chains, problems, strict=True)]
        ),
        **_adaptive(problems, chains),
    }
    value = _fit_value(checkpoint, parameters)
    n_pairs, preferred = _judged(checkpoint, value, problems, chains)
    yield {"n_pairs": np.array(n_pairs), "preferred": np.array(preferred)}
    searcher = Searcher(checkpoint, value, parameters)
    for name, found in (
        ("beam", [searcher.beam(problems, *sizes) for sizes in BEAMS]),
        ("best_first", [searcher.best_first(problems, branch) for branch in BRANCHES]),
    ):
        yield {
            f"{name}_tokens": np.array([tokens for tokens, _ in found]),
            f"{name}_right": np.array([right for _, right in found]),
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


def most_frequent(answers: Sequence[int | None]) -> int | None:
    """Return the answer of most chains, of equally frequent ones the first; None without any."""
    given = Counter(answer for answer in answers if answer is not None)
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


def _majority_right(
    problems: Sequence[Problem], chains: Sequence[Sequence[Chain]], k: int
) -> float:
    right = [
        most_frequent([chain.answer for chain in of[:k]]) == problem.answer
        for problem, of in zip(problems, chains, strict=True)
    ]
    return sum(right) / len(right)


def _probable_right(
    problems: Sequence[Problem], chains: Sequence[Sequence[Chain]], k: int
) -> float:
    right = [
        most_probable(of[:k]) == problem.answer
        for problem, of in zip(problems, chains, strict=True)
    ]
    return sum(right) / len(right)


def _any_right(problems: Sequence[Problem], chains: Sequence[Sequence[Chain]], k: int) -> float:
    right = [
        any(chain.answer == problem.answer for chain in of[:k])
        for problem, of in zip(problems, chains, strict=True)
    ]
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


def _adaptive(
    problems: Sequence[Problem], chains: Sequence[Sequence[Chain]]
) -> dict[str, np.ndarray]:
    """Vote until the model's own probabilities say that an answer is sure enough."""
    tokens, right, spent = [], [], []
    for bound in BOUNDS:
        used = [needed(of, bound) for of in chains]
        kept = [of[:k] for of, k in zip(chains, used, strict=True)]
        tokens.append(sum(chain.n_tokens for of in kept for chain in of) / len(kept))
        answers = [most_frequent([chain.answer for chain in of]) for of in kept]
        right.append(
            sum(a == p.answer for a, p in zip(answers, problems, strict=True)) / len(problems)
        )
        spent.append(used)
    return {
        "bound": np.array(BOUNDS),
        "adaptive_tokens": np.array(tokens),
        "adaptive_right": np.array(right),
        "adaptive_chains": np.array(spent),
    }


# --- search ---------------------------------------------------------------------------------------


class StepValue:
    """Predicts which of several steps of one problem leads to a right answer more often.

    What makes a problem easy is no reason to prefer one of its chains. Features and rewards are
    therefore taken from their means over the chains of a problem, step by step; a ridge regression
    (`ValueHead`) predicts the rest. A value is a difference from the usual chain at that step.
    """

    def __init__(self, d_model: int) -> None:
        self.head = ValueHead(d_model)
        self.usual: dict[int, Tensor] = {}

    def fit(self, x: Float[Tensor, "problem chain d_model"], step: int, rewards: Tensor) -> None:
        """Add the states after a step of the chains of several problems."""
        self.usual[step] = x.mean(dim=(0, 1))
        features = (x - x.mean(dim=1, keepdim=True)).flatten(0, 1)
        targets = (rewards - rewards.mean(dim=1, keepdim=True)).flatten()
        self.head.fit(features[:, None], targets, torch.ones(len(targets), 1))

    def predict(self, x: Float[Tensor, "row d_model"], steps: Sequence[int]) -> list[float]:
        """Return the values of states after as many steps, the end of a chain as the last one."""
        usual = torch.stack([self.usual.get(step, self.usual[LAST]) for step in steps])
        values: list[float] = self.head.predict((x - usual)[:, None])[:, 0].tolist()
        return values


def _fit_value(checkpoint: Checkpoint, parameters: Thinking) -> StepValue:
    """Fit the value at the ends of the steps of chains for training problems."""
    known = split().train
    rng = np.random.default_rng(parameters.seed)
    problems = [known[at] for at in rng.choice(len(known), parameters.n_trained, replace=False)]
    equals = checkpoint.tokenizer.encode_ids(["="])[0][0]
    states, rewards = [], []
    for seed in range(CHAINS_TRAINED):
        chains = _sample(checkpoint, problems, 7000 + 1000 * parameters.seed + seed, parameters)
        rows = [
            [*_prompt(checkpoint, problem), *checkpoint.tokenizer.encode_ids([chain.text])[0]]
            for problem, chain in zip(problems, chains, strict=True)
        ]
        x = _states(checkpoint, rows)
        ends = [
            [*[at for at, token in enumerate(row) if token == equals][1:LAST], len(row) - 1]
            for row in rows
        ]
        # A chain with fewer steps has its end at each later step.
        filled = [[*of[:-1], *[of[-1]] * (LAST - len(of) + 1)] for of in ends]
        states.append(torch.stack([each[of] for each, of in zip(x, filled, strict=True)]))
        rewards.append([float(c.answer == p.answer) for c, p in zip(chains, problems, strict=True)])
    value = StepValue(checkpoint.config.d_model)
    together = torch.stack(states, dim=1)  # (problem, chain, step, d_model)
    for step in range(LAST):
        value.fit(together[:, :, step], step + 1, torch.tensor(rewards).T)
    return value


def _judged(
    checkpoint: Checkpoint,
    value: StepValue,
    problems: Sequence[Problem],
    chains: Sequence[Sequence[Chain]],
) -> tuple[int, float]:
    """Return how many pairs of a right and a wrong chain there are, and how many are told apart.

    Both chains of a pair are for one problem. With no pair the share is that of guessing, 1/2.
    """
    n_pairs, n_right = 0, 0
    for problem, of in zip(problems, chains, strict=True):
        different = list({chain.text: chain for chain in of}.values())
        rows = [
            [*_prompt(checkpoint, problem), *checkpoint.tokenizer.encode_ids([chain.text])[0]]
            for chain in different
        ]
        states = _states(checkpoint, rows)[torch.arange(len(rows)), [len(row) - 1 for row in rows]]
        values = value.predict(states, [LAST] * len(rows))
        right, wrong = (
            [
                each
                for each, chain in zip(values, different, strict=True)
                if (chain.answer == problem.answer) == is_right
            ]
            for is_right in (True, False)
        )
        n_pairs += len(right) * len(wrong)
        n_right += sum(good > bad for good in right for bad in wrong)
    return n_pairs, n_right / n_pairs if n_pairs else 0.5


def _prompt(checkpoint: Checkpoint, problem: Problem) -> list[int]:
    tokenizer = checkpoint.tokenizer
    return [tokenizer.start_id, *tokenizer.encode_ids([problem.question])[0]]


@torch.no_grad()
def _states(
    checkpoint: Checkpoint, rows: Sequence[Sequence[int]]
) -> Float[Tensor, "row token d_model"]:
    """Return the last layer's output; what stands after a row's end changes nothing before it."""
    check()
    longest = max(map(len, rows))
    padded = [[*row, *[0] * (longest - len(row))] for row in rows]
    x, _ = checkpoint.model.decoder(torch.tensor(padded))
    states: Tensor = x
    return states


class Partial(NamedTuple):
    """The tokens of a chain up to the end of a step, and the value that is predicted for it."""

    ids: tuple[int, ...]
    is_done: bool
    value: float


class Searcher:
    """Writes chains step by step, and chooses between steps by the value head."""

    def __init__(self, checkpoint: Checkpoint, value: StepValue, parameters: Thinking) -> None:
        self.checkpoint, self.value = checkpoint, value
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
        kept = [[self._start(problem)] for problem in problems]
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
                kept[number] = sorted(candidates.values(), key=lambda each: -each.value)[:width]
        return self._score(problems, [max(of, key=lambda each: each.value) for of in kept])

    def best_first(self, problems: Sequence[Problem], branch: int) -> tuple[float, float]:
        """Write on the best partial chain of all, until the best one is done; as `beam`."""
        self.n_written = 0
        queues = [[(0.0, 0, self._start(problem))] for problem in problems]
        chosen: list[Partial | None] = [None] * len(problems)
        ticket = 0
        for _ in range(MAX_ROUNDS):
            popped = []
            for number, queue in enumerate(queues):
                if chosen[number] is None:
                    best = heapq.heappop(queue)[2]
                    if best.is_done:
                        chosen[number] = best
                    else:
                        popped.append((number, best))
            if not popped:
                break
            grown = iter(self._grow([each for _, each in popped for _ in range(branch)]))
            for number, _ in popped:
                known = {entry[2].ids for entry in queues[number]}
                for new in (next(grown) for _ in range(branch)):
                    if new.ids not in known:
                        known.add(new.ids)
                        ticket += 1
                        heapq.heappush(queues[number], (-new.value, ticket, new))
        for number, queue in enumerate(queues):
            if chosen[number] is None:
                done = [entry[2] for entry in queue if entry[2].is_done]
                rest = done or [entry[2] for entry in queue]
                chosen[number] = max(rest, key=lambda each: each.value)
        return self._score(problems, [each for each in chosen if each is not None])

    def _start(self, problem: Problem) -> Partial:
        return Partial(tuple(_prompt(self.checkpoint, problem)), False, 0.0)

    @torch.no_grad()
    def _grow(self, partial: Sequence[Partial]) -> list[Partial]:
        """Write the next step of each, to its equals sign or to the end of the chain."""
        rows = [list(each.ids) for each in partial]
        limit = self.checkpoint.config.max_tokens
        living = list(range(len(rows)))
        while living:
            # Rows that are equal so far are computed once.
            texts = list(dict.fromkeys(tuple(rows[at]) for at in living))
            x = _states(self.checkpoint, texts)
            last = x[torch.arange(len(texts)), [len(text) - 1 for text in texts]]
            logits = self.checkpoint.model.decoder.embedding.unembed(last[None])[0]
            policy = (logits.float() / self.temperature).softmax(-1)
            place = {text: at for at, text in enumerate(texts)}
            chances = policy[[place[tuple(rows[at])] for at in living]]
            drawn = torch.multinomial(chances, 1, generator=self.generator)[:, 0].tolist()
            self.n_written += len(living)
            for at, token in zip(living, drawn, strict=True):
                rows[at].append(token)
            living = [
                at
                for at in living
                if rows[at][-1] not in (self.equals, self.end) and len(rows[at]) < limit
            ]
        ends = [len(row) - 1 - (row[-1] == self.end) for row in rows]
        states = _states(self.checkpoint, rows)[torch.arange(len(rows)), ends]
        steps = [
            LAST if row[-1] == self.end else min(LAST, row.count(self.equals) - 1) for row in rows
        ]
        values = self.value.predict(states, steps)
        return [
            Partial(tuple(row), row[-1] != self.equals, value)
            for row, value in zip(rows, values, strict=True)
        ]

    def _score(self, problems: Sequence[Problem], chosen: Sequence[Partial]) -> tuple[float, float]:
        marked = [self._mark(*pair) for pair in zip(problems, chosen, strict=True)]
        right = sum(marking.is_right for marking in marked) / len(marked)
        return self.n_written / len(problems), right

    def _mark(self, problem: Problem, chosen: Partial) -> Marking:
        begin = len(_prompt(self.checkpoint, problem))
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
        "majority_tokens": Quantity(
            "n_chains", "Tokens written for a problem, on average.", unit="tokens"
        ),
        "majority_right": Quantity(
            "n_chains", "Share of problems whose most frequent answer is right."
        ),
        "probable_right": Quantity(
            "n_chains",
            "Share of problems for which the answer whose different chains are the most probable "
            "together is right.",
        ),
        "any_right": Quantity(
            "n_chains", "Share of problems with a right answer among the chains."
        ),
        "sure": Quantity("problem", "The probability that the model gave its first chain."),
        "sure_right": Quantity("problem", "Whether that chain's answer is right."),
        "bound": Quantity("bound", "The probability at which adaptive voting stops."),
        "adaptive_tokens": Quantity(
            "bound", "Tokens that it writes for a problem, on average.", unit="tokens"
        ),
        "adaptive_right": Quantity("bound", "Share of right answers."),
        "adaptive_chains": Quantity(
            "bound problem", "Chains that each problem got.", unit="chains"
        ),
        "n_pairs": Quantity(
            "", "Pairs of a right and a wrong chain for one problem.", unit="pairs"
        ),
        "preferred": Quantity(
            "", "Share of them in which the value head prefers the right one; 1/2 is guessing."
        ),
        "beam_tokens": Quantity(
            "beam", "Tokens of beam search, kept and dropped, on average.", unit="tokens"
        ),
        "beam_right": Quantity(
            "beam",
            "Share of right answers; with 1, 1, 2 and 2 kept, and 2, 4, 2 and 4 next steps tried "
            "for each.",
        ),
        "best_first_tokens": Quantity(
            "branch", "Tokens of best-first search, on average.", unit="tokens"
        ),
        "best_first_right": Quantity(
            "branch", "Share of right answers, with 2 and 4 next steps tried."
        ),
    },
    see="The model multiplies by writing a chain of steps, which is sampled, so a second chain "
    "may differ. More chains cost more tokens; what they gain depends on who chooses between "
    "them. Here a vote helps little: a model that is right now and then does not say the right "
    "answer most often, and one that is mostly right has chains that agree. The line of “any”"
    " is what a perfect judge would gain from the same chains. The model's own probability is"
    " a judge that costs nothing: add up the probabilities of the different chains that end "
    "in one answer, and take the answer with the largest sum. Before reinforcement that was "
    "right for 30 % of 300 problems, the vote for 22 %. Adaptive voting stops as soon as the "
    "model is sure. Search chooses between unfinished chains, by a value head, and is as good"
    " as that judge: the one here, measured on 300 problems, preferred the right of two "
    "chains in 54 % of pairs (95 % interval 49 to 59 %), where a guess has 50 %.",
    field="Reinforcement rewards chains that end in the right answer; the reinforced model has had "
    "it. A value head is a small regression on the model's last layer that says how good an "
    "unfinished chain is. Reasoning models are trained to write longer chains, and answers "
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
