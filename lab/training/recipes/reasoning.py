"""The recipe `reasoning`: a small decoder that learns to multiply, step by step; no corpus.

    headlight train reasoning --out runs/sums
    headlight train reasoning --out runs/direct --set rows.form=direct --set rows.imitation=1590

    headlight train reasoning --out runs/hard --set rows.second_digits=3 --set model.max_tokens=64

It makes its problems itself and takes no corpus. Tokens are characters. The first
``rows.imitation`` steps learn from solutions written out by the rule; the steps after them are
reinforcement: the model writes some chains for each problem, each chain is marked, and the policy
gradient makes the better ones of a problem more probable. Nothing shows it a right chain then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from headlight.lab.training.batches import Batch, Material, generator_of
from headlight.lab.training.chains import WrittenChains, reward_of, write_chains
from headlight.lab.training.config import BATCH_SETTINGS, LoopConfig, Recipe, require
from headlight.lab.training.loop import STATE, Lesson, Loop
from headlight.lab.training.policy_gradient import group_advantages, policy_loss, shared_log_probs
from headlight.model.arithmetic import FORMS, Problem, Split, split
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import save
from headlight.model.config import TransformerConfig, require_known
from headlight.model.corpus import CorpusError
from headlight.model.experiments.chains import marks, solve
from headlight.model.generation.continuations import Continuations
from headlight.model.optimization.optimizers import OPTIMIZERS, make_optimizers
from headlight.model.optimization.schedule import SCHEDULES
from headlight.model.tokenizer import Tokenizer

BEFORE = "imitation"
"""The folder in a run's folder that keeps the model as it was before reinforcement."""
WARMUP = 10
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
class ReasoningConfig:
    """The settings of imitation, and those of reinforcement.

    Args:
        form: of the solutions; a name of `arithmetic.FORMS`.
        count: solutions in a batch of imitation.
        second_digits: digits of the second factor, 2 or 3; chains of 3 need more of
            ``model.max_tokens``.
        imitation: the steps of imitation; the rest are reinforcement.
        problems: problems in a step.
        chains: chains that the model writes for each problem.
        updates: updates of the weights in a step, each from a part of its chains.
        optimizer: of reinforcement.
        rate: its learning rate at its peak.
        temperature: of the chains.
        clip: ε of the clipped ratio; 0: none.

    Raises:
        ValueError: a number is out of its range, or a name is unknown.
    """

    form: str = "chain"
    count: int = 64
    second_digits: int = 2
    imitation: int = 290
    problems: int = 64
    chains: int = 32
    updates: int = 2
    optimizer: str = "muon"
    rate: float = 1e-3
    temperature: float = 1.0
    clip: float = 0.2

    def __post_init__(self) -> None:
        for name in ("count", "problems", "chains", "updates"):
            require(self, name, 1 <= getattr(self, name) <= 2**16, "lie between 1 and 65,536")
        for name in ("imitation", "clip"):
            require(self, name, getattr(self, name) >= 0, "be at least 0")
        for name in ("rate", "temperature"):
            require(self, name, getattr(self, name) > 0, "be positive")
        require(self, "second_digits", self.second_digits in (2, 3), "be 2 or 3")
        require_known("form", self.form, FORMS)
        require_known("optimizer", self.optimizer, OPTIMIZERS)


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
        return self._solutions(self._draw(self._split.train, self.config.count, step))

    def asked(self, step: int) -> list[Problem]:
        """Return the training problems of a step of reinforcement."""
        return self._draw(self._split.train, self.config.problems, step)

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


# --- reinforcement --------------------------------------------------------------------------------


class ReasoningLoop(Loop):
    """Trains by imitation, then by reinforcement; see `Loop` for the arguments."""

    batches: ReasoningBatches

    def prepare(self) -> None:
        """Begin with imitation."""
        self.rows = self.batches.config
        self._is_reinforcing = False

    def resume(self) -> None:
        """As `Loop.resume`, in the phase of the saved step."""
        if _saved_step(self.out / STATE) > self.rows.imitation:
            self._begin_reinforcement()
        super().resume()

    def less_memory(self) -> str:
        """As `Loop.less_memory`; reinforcement has its own batches."""
        if not self._is_reinforcing:
            return super().less_memory()
        fewer = max(1, self.rows.problems // 2)
        return f"ask fewer problems in a step with --set rows.problems={fewer}"

    def figures(self) -> dict[str, float]:
        """Measure the model on the validation problems, with the likeliest token at each place."""
        self.model.eval()
        _, marked = solve(
            self.model,
            self.batches.tokenizer,
            self.batches.valid_problems,
            n_tokens=self.batches.n_tokens,
        )
        self.model.train()
        return {
            "valid_right": mean(marking.is_right for marking in marked),
            "valid_sound": mean(marking.is_right and marking.is_sound for marking in marked),
        }

    def _factor(self) -> float:
        """Return the factor on the learning rate; each phase has its own schedule."""
        imitation, steps = self.rows.imitation, self.config.steps
        first, n_steps, warmup = 0, min(imitation, steps), self.config.warmup
        if self.step >= imitation:
            first, n_steps, warmup = imitation, steps - imitation, WARMUP
        decay = int(self.config.decay * n_steps)
        schedule = SCHEDULES[self.config.schedule]
        return schedule(self.step - first, steps=n_steps, warmup=warmup, decay=decay)

    def _learn(self) -> Lesson:
        if self.step < self.rows.imitation:
            return super()._learn()
        if not self._is_reinforcing:
            self._keep_model()
            self._begin_reinforcement()
        return self._reinforce()

    def _keep_model(self) -> None:
        """Write the model as it is before reinforcement, next to the run's own."""
        folder = self.out / BEFORE
        prose = f"# {BEFORE}\n\nThe model before reinforcement, after {self.step} steps."
        card = ModelCard(title=BEFORE, licence="not stated", prose=prose)
        save(folder, self.model, self.batches.tokenizer, card)

    def _begin_reinforcement(self) -> None:
        """Replace the optimizers."""
        # Muon's updates have one size however noisy the gradient: with 8 chains for each of 32
        # problems 8e-4 took a model from 43 % to 36 % in 40 steps; 32 chains for 64 carry 1e-3.
        self.optimizers = make_optimizers(
            self.model,
            self.rows.optimizer,
            learning_rate=self.rows.rate,
            adam_share=self.config.adam_share,
            weight_decay=0.0,
        )
        self._is_reinforcing = True

    def _reinforce(self) -> Lesson:
        """Make one step of reinforcement; the loss is the mean of its updates."""
        rows = self.rows
        # 1. Write chains and mark them.
        generator = generator_of(self.batches.seed, self.step, 1)
        self.model.eval()
        written = self._draw(self.batches.asked(self.step), generator)
        # 2. Update on each part of them.
        losses = []
        numbers = written.used_problems
        for part in numbers.chunk(rows.updates) if len(numbers) else ():
            chosen = written.is_used & torch.isin(written.problems, part)
            sampled, advantages = written.sampled.rows(chosen), written.advantages[chosen]
            losses.append(self._policy_update(sampled, advantages))
        n_tokens = int(written.sampled.weights.sum())
        return Lesson(mean(losses), n_tokens, figures=written.figures())

    def _draw(self, asked: Sequence[Problem], generator: torch.Generator) -> WrittenChains:
        """Write chains for some problems, and compute their advantages."""
        rows = self.rows
        sampled, problems = write_chains(
            self.model,
            self.batches.tokenizer,
            asked,
            n_chains=rows.chains,
            n_tokens=self.batches.n_tokens,
            temperature=rows.temperature,
            generator=generator,
        )
        marked = marks(
            self.batches.tokenizer, [asked[number] for number in problems.tolist()], sampled
        )
        rewards = torch.tensor([reward_of(marking) for marking in marked])
        groups = rewards.repeat_interleave(sampled.row_counts).view(-1, self.rows.chains)
        advantages = group_advantages(groups).view(-1, 1)[sampled.row_counts.cumsum(0) - 1]
        is_used = (advantages != 0).any(1)  # the others have no gradient
        return WrittenChains(sampled, marked, rewards, advantages, is_used, problems)

    def _policy_update(self, sampled: Continuations, advantages: Tensor) -> float:
        """Update the weights once; return the loss."""
        rows = self.rows
        self.model.zero_grad()
        log_probs = shared_log_probs(self.model, sampled, temperature=rows.temperature)
        loss = policy_loss(
            log_probs, sampled.log_probs, advantages, sampled.weights, clip=rows.clip or None
        )
        loss.backward()
        self._descend()
        return loss.item()


def mean(values: Iterable[float]) -> float:
    """Compute the mean; 0 of nothing."""
    numbers = [float(value) for value in values]
    return sum(numbers) / max(1, len(numbers))


def _saved_step(path: Path) -> int:
    """Read the step of a saved state; 0 if there is none, or if `Loop.resume` will reject it."""
    try:
        with safe_open(path, framework="pt") as file:
            return int(json.loads((file.metadata() or {})["progress"])["step"])
    except (OSError, SafetensorError, LookupError, ValueError):
        return 0


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
    return () if rows.imitation else BATCH_SETTINGS


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
