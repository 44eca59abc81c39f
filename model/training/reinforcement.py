"""The loop of the recipe `reasoning`: imitation of written solutions, then reinforcement.

`ReasoningLoop._reinforce` is one step of reinforcement: the model writes some chains for each
problem, each chain is marked, and the policy gradient makes the better ones of a problem more
probable. Nothing shows the model a right chain in that phase.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor

from headlight.model.card import ModelCard
from headlight.model.checkpoint import load, save
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.arithmetic import Marking, Problem, mark
from headlight.model.training.batches import Batch, Batches, generator_of
from headlight.model.training.config import LoopConfig
from headlight.model.training.distributed import ALONE, Processes
from headlight.model.training.loop import STATE, Loop, StepReport
from headlight.model.training.optimizers import make_optimizers
from headlight.model.training.policy_gradient import (
    Continuations,
    group_advantages,
    kl_to_reference,
    log_probs_of,
    policy_loss,
    sample_continuations,
)
from headlight.model.training.schedule import SCHEDULES
from headlight.model.transformer import Transformer

BEFORE = "imitation"
"""The folder in a run's folder that keeps the model as it was before reinforcement."""
METHODS, BASELINES = ("reinforce", "expert"), ("group", "value")
WARMUP = 10
CHAINS_TOGETHER = 512
# The share of the value head's statistics that each step keeps, and its ridge.
MEMORY, RIDGE = 0.9, 1.0


@dataclass(frozen=True, kw_only=True)
class ReinforcementConfig:
    """The settings of reinforcement.

    Args:
        imitation: the steps of imitation; the rest are reinforcement.
        method: ``reinforce``: policy gradient. ``expert``: expert iteration (Anthony et al. 2017,
            https://arxiv.org/abs/1705.08439; Zelikman et al. 2022,
            https://arxiv.org/abs/2203.14465): in cycles, the model writes many chains and imitates
            those whose answer is right.
        cycle: the steps of a cycle of expert iteration, in which the learning rate falls to 0.
        problems: problems in a step, or in a cycle.
        chains: chains that the model writes for each problem.
        updates: updates of the weights in a step, each from a part of its chains.
        rate: the learning rate at its peak: AdamW's, or the loop's optimizer's for the method
            ``expert``.
        temperature: of the chains.
        baseline: ``group``: the mean reward of the problem's chains. ``value``: a value head, which
            predicts the reward of the chain before each of its tokens.
        is_normalised: whether advantages are divided by a standard deviation: of the problem's
            rewards, or of all advantages of the step with a value head.
        negative: weight of negative advantages, in [0, 1]. 1: REINFORCE. 0: chains better than
            their baseline become more probable, and none less: self-imitation (Oh et al. 2018,
            https://arxiv.org/abs/1806.05635).
        clip: ε of the clipped ratio; 0: none.
        kl: weight of the KL divergence from the model before reinforcement.
        process: reward for right partial products, times their share; 0: the answer alone counts.

    Raises:
        ValueError: a number is out of its range, or a name is unknown.
    """

    imitation: int = 340
    method: str = "reinforce"
    cycle: int = 50
    problems: int = 32
    chains: int = 8
    updates: int = 2
    rate: float = 1.5e-4
    temperature: float = 1.0
    baseline: str = "group"
    is_normalised: bool = True
    negative: float = 1.0
    clip: float = 0.2
    kl: float = 0.0
    process: float = 0.0

    def __post_init__(self) -> None:
        for name in ("problems", "chains", "updates", "cycle"):
            self._require(name, 1 <= getattr(self, name) <= 2**16, "lie between 1 and 65,536")
        for name in ("imitation", "clip", "kl", "process"):
            self._require(name, getattr(self, name) >= 0, "be at least 0")
        for name in ("rate", "temperature"):
            self._require(name, getattr(self, name) > 0, "be positive")
        self._require("negative", 0 <= self.negative <= 1, "lie in [0, 1]")
        for name, known in (("method", METHODS), ("baseline", BASELINES)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} {getattr(self, name)!r} is unknown; choose one of {', '.join(known)}"
                )

    def _require(self, name: str, is_met: bool, rule: str) -> None:
        if not is_met:
            raise ValueError(f"{name} ({getattr(self, name)}) must {rule}")


class ProblemSource(Batches, Protocol):
    """Batches of imitation, with the problems of reinforcement and of validation."""

    config: Any
    tokenizer: Tokenizer
    seed: int
    valid_problems: Sequence[Problem]
    n_tokens: int

    def asked(self, step: int) -> list[Problem]:
        """Return the problems of a step of reinforcement, all with questions of one length."""


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
    device = model.vectors.device
    questions = tokenizer.encode_ids([problem.question for problem in problems])
    prompts = torch.tensor([[tokenizer.start_id, *ids] for ids in questions], device=device)
    sampled = sample_continuations(
        model,
        prompts,
        n_tokens=n_tokens,
        stop_id=tokenizer.end_id,
        temperature=temperature,
        generator=generator,
    )
    marked = [
        mark(problem, tokenizer.decode(ids), has_ended=has_ended)
        for problem, ids, has_ended in zip(
            problems, sampled.written(), sampled.has_ended.tolist(), strict=True
        )
    ]
    return sampled, marked


def reward_of(marking: Marking, process: float) -> float:
    """Compute the reward of a chain: 1 for the right answer, and the process reward.

    Args:
        marking: of the chain.
        process: the reward for all partial products; a share of them gives that share.
    """
    return float(marking.is_right) + process * marking.product_share


class ValueHead:
    """Predicts the reward of a chain from the last layer's output, by ridge regression.

    Each step adds its tokens to the regression, whose older part fades. The trunk gets no gradient
    from it.

    Args:
        width: d_model.
    """

    def __init__(self, width: int) -> None:
        self.tensors = {"gram": torch.zeros(width + 1, width + 1), "moment": torch.zeros(width + 1)}

    def predict(self, x: Float[Tensor, "row token d_model"]) -> Float[Tensor, "row token"]:
        """Predict the reward at every token; 0 before the first fit."""
        gram = self.tensors["gram"] + RIDGE * torch.eye(len(self.tensors["gram"]))
        return _with_one(x) @ torch.linalg.solve(gram, self.tensors["moment"])

    def fit(
        self, x: Float[Tensor, "row token d_model"], rewards: Float[Tensor, " row"], mask: Tensor
    ) -> None:
        """Add the tokens of some chains, each with the reward of its chain."""
        features = _with_one(x)[mask]
        targets = rewards[:, None].expand(mask.shape)[mask]
        for name, found in (("gram", features.T @ features), ("moment", features.T @ targets)):
            self.tensors[name].mul_(MEMORY).add_(found)


def _with_one(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)


class ReasoningLoop(Loop):
    """Trains by imitation, then by reinforcement; see `Loop` for the arguments.

    Raises:
        ValueError: reinforcement is asked for in several processes.
    """

    batches: ProblemSource

    def __init__(
        self,
        model: Transformer,
        batches: ProblemSource,
        config: LoopConfig,
        out: Path,
        precision: torch.dtype = torch.float32,
        processes: Processes = ALONE,
    ) -> None:
        super().__init__(model, batches, config, out, precision, processes)
        self.rows: ReinforcementConfig = batches.config
        if processes.size > 1 and config.steps > self.rows.imitation:
            raise ValueError("reinforcement runs in one process; start it without torchrun")
        self.value_head = ValueHead(model.config.d_model)
        self.reference: Transformer | None = None
        self._is_reinforcing = False
        # Of expert iteration: right chains as rows of ids, and their lengths.
        self.pool: dict[str, Tensor] = {}

    def resume(self) -> None:
        """As `Loop.resume`, in the phase of the saved step."""
        if _saved_step(self.out / STATE) > self.rows.imitation:
            self._begin_reinforcement()
        super().resume()

    def extra_tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the value head and of the pool, for the state."""
        return self.value_head.tensors | self.pool

    def load_extra_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Take the tensors of a saved state."""
        for name, tensor in tensors.items():
            (self.value_head.tensors if name in self.value_head.tensors else self.pool)[name] = (
                tensor
            )

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
            "valid_right": _mean(marking.is_right for marking in marked),
            "valid_sound": _mean(marking.is_right and marking.is_sound for marking in marked),
        }

    def _factor(self) -> float:
        """Return the factor on the learning rate, of a schedule for each phase."""
        imitation, steps = self.rows.imitation, self.config.steps
        first, n_steps, warmup = 0, min(imitation, steps), self.config.warmup
        if self.step >= imitation:
            first, n_steps, warmup = imitation, steps - imitation, WARMUP
            if self.rows.method == "expert":
                cycle = self.rows.cycle
                return 1 - (self.step - imitation) % cycle / cycle
        decay = int(self.config.decay * n_steps)
        schedule = SCHEDULES[self.config.schedule]
        return schedule(self.step - first, steps=n_steps, warmup=warmup, decay=decay)

    def _advance(self) -> StepReport:
        if self.step < self.rows.imitation:
            return super()._advance()
        if not self._is_reinforcing:
            self._keep_model()
            self._begin_reinforcement()
        began = perf_counter()
        is_expert = self.rows.method == "expert"
        loss, n_tokens, figures = self._imitate_experts() if is_expert else self._reinforce()
        self.step += 1
        valid_loss = None
        if self.step % self.config.validate_every == 0 or self.step == self.config.steps:
            valid_loss = self.validate()
            figures |= self.figures()
        self.tokens += n_tokens
        self.seconds += perf_counter() - began
        return StepReport(
            self.step, loss, 0.0, valid_loss, self.tokens, self.seconds, figures=figures
        )

    def _keep_model(self) -> None:
        """Write the model as it is before reinforcement, beside the run's own."""
        folder = self.out / BEFORE
        prose = f"# {BEFORE}\n\nThe model before reinforcement, after {self.step} steps."
        card = ModelCard(title=BEFORE, licence="not stated", prose=prose)
        save(folder, self.model, self.batches.tokenizer, card)

    def _begin_reinforcement(self) -> None:
        """Replace the optimizers, and load the reference if a KL divergence is asked for."""
        # Muon makes updates of one size however noisy the gradient, and rewards are noisy: at 8e-4
        # it took a model from 43 % to 36 % in 40 steps.
        optimizer = self.config.optimizer if self.rows.method == "expert" else "adamw"
        self.optimizers = make_optimizers(
            self.model,
            optimizer,
            learning_rate=self.rows.rate,
            adam_share=self.config.adam_share,
            weight_decay=self.config.weight_decay if self.rows.method == "expert" else 0.0,
        )
        if self.rows.kl:
            checkpoint = load(self.out / BEFORE, device=self.model.vectors.device)
            assert isinstance(checkpoint.model, Transformer)
            self.reference = checkpoint.model.requires_grad_(False)
        self._is_reinforcing = True

    def _reinforce(self) -> tuple[float, int, dict[str, float]]:
        """Make one step of reinforcement.

        Returns:
            The mean loss of its updates, the tokens sampled, and its figures.
        """
        rows = self.rows
        # 1. Write chains, and mark them.
        generator = generator_of(self.batches.seed, self.step, 1)
        asked = [each for each in self.batches.asked(self.step) for _ in range(rows.chains)]
        self.model.eval()
        sampled, marked = solve(
            self.model,
            self.batches.tokenizer,
            asked,
            n_tokens=self.batches.n_tokens,
            temperature=rows.temperature,
            generator=generator,
        )
        rewards = torch.tensor([reward_of(marking, rows.process) for marking in marked])
        # 2. Advantages, and the chains that have one. Without a KL divergence the others have no
        # gradient.
        advantages = self._advantages(sampled, rewards)
        is_used = torch.ones(len(rewards), dtype=torch.bool)
        if not rows.kl:
            is_used = advantages.abs().amax(dim=1) > 0
        numbers = is_used.nonzero()[:, 0]
        numbers = numbers[torch.randperm(len(numbers), generator=generator)]
        # 3. Update on each part.
        losses, kl = [], []
        for part in numbers.chunk(rows.updates) if len(numbers) else ():
            loss, part_kl = self._policy_update(sampled.rows(part), advantages[part])
            losses.append(loss)
            kl.append(part_kl)
        n_tokens = int(sampled.is_sampled.sum())
        figures = {
            "reward": float(rewards.mean()),
            "right": _mean(marking.is_right for marking in marked),
            "wrong_reason": _mean(marking.is_right_for_wrong_reason for marking in marked),
            "used": float(is_used.float().mean()),
            "entropy": -float((sampled.log_probs * sampled.is_sampled).sum() / n_tokens),
            "length": n_tokens / len(marked),
        }
        if rows.kl:
            figures["kl"] = _mean(kl)
        return _mean(losses), n_tokens, figures

    def _imitate_experts(self) -> tuple[float, int, dict[str, float]]:
        """Make one step of expert iteration; the first of a cycle writes the chains.

        Returns:
            The loss, the tokens read and sampled, and the figures of the chains written.
        """
        figures, n_sampled = {}, 0
        if (self.step - self.rows.imitation) % self.rows.cycle == 0:
            n_sampled, figures = self._write_pool()
        rows, lengths = self.pool["ids"], self.pool["lengths"]
        if not len(rows):
            return 0.0, n_sampled, figures
        generator = generator_of(self.batches.seed, self.step, 2)
        drawn = torch.randint(len(rows), (self.batches.config.count,), generator=generator)
        taken = rows[drawn, : int(lengths[drawn].max())]
        places = torch.arange(1, taken.shape[1])
        is_counted = (places >= int(self.pool["n_prompt"])) & (places < lengths[drawn, None])
        loss, _ = self._update(Batch.of_rows(taken, is_counted))
        return loss, n_sampled + taken.numel(), figures

    def _write_pool(self) -> tuple[int, dict[str, float]]:
        """Write chains for the problems of a cycle, and keep the right ones, each once."""
        generator = generator_of(self.batches.seed, self.step, 1)
        asked = [each for each in self.batches.asked(self.step) for _ in range(self.rows.chains)]
        width = 0
        kept: dict[tuple[int, ...], None] = {}
        every: list[Marking] = []
        n_tokens = n_prompt = 0
        self.model.eval()
        for first in range(0, len(asked), CHAINS_TOGETHER):
            sampled, marked = solve(
                self.model,
                self.batches.tokenizer,
                asked[first : first + CHAINS_TOGETHER],
                n_tokens=self.batches.n_tokens,
                temperature=self.rows.temperature,
                generator=generator,
            )
            n_prompt = sampled.n_prompt
            ends = (n_prompt + sampled.is_sampled.sum(1)).tolist()
            for row, end, marking in zip(sampled.ids.tolist(), ends, marked, strict=True):
                if marking.is_right:
                    kept[tuple(row[:end])] = None
                    width = max(width, end)
            n_tokens += int(sampled.is_sampled.sum())
            every += marked
        stop = self.batches.tokenizer.end_id
        self.pool = {
            "ids": torch.tensor([[*row, *[stop] * (width - len(row))] for row in kept]),
            "lengths": torch.tensor([len(row) for row in kept]),
            "n_prompt": torch.tensor(n_prompt),
        }
        return n_tokens, {
            "reward": _mean(reward_of(marking, self.rows.process) for marking in every),
            "right": _mean(marking.is_right for marking in every),
            "wrong_reason": _mean(marking.is_right_for_wrong_reason for marking in every),
            "used": len(kept) / len(every),
            "length": n_tokens / len(every),
        }

    def _advantages(
        self, sampled: Continuations, rewards: Float[Tensor, " row"]
    ) -> Float[Tensor, "row column"]:
        """Compute the advantages (row, 1) of each chain, or (row, token) with a value head."""
        rows = self.rows
        if rows.baseline == "group":
            groups = rewards.view(-1, rows.chains)
            advantages = group_advantages(groups, is_normalised=rows.is_normalised).view(-1, 1)
            return self._weighted(advantages)
        with torch.no_grad():
            x, _ = self.model.decoder(sampled.ids[:, :-1])
        x = x[:, sampled.n_prompt - 1 :]
        advantages = rewards[:, None] - self.value_head.predict(x)
        self.value_head.fit(x, rewards, sampled.is_sampled)
        advantages = advantages * sampled.is_sampled
        if rows.is_normalised:
            advantages = advantages / (advantages[sampled.is_sampled].std() + 1e-6)
        return self._weighted(advantages)

    def _weighted(self, advantages: Tensor) -> Tensor:
        return torch.where(advantages < 0, self.rows.negative * advantages, advantages)

    def _policy_update(self, sampled: Continuations, advantages: Tensor) -> tuple[float, float]:
        """Update the weights once; return the loss and the KL divergence, 0 if not asked for."""
        rows, ids = self.rows, sampled.ids[:, :-1]
        self.model.zero_grad()
        found = log_probs_of(self.model(ids).logits, sampled, temperature=rows.temperature)
        loss = policy_loss(
            found, sampled.log_probs, advantages, sampled.is_sampled, clip=rows.clip or None
        )
        kl = loss.new_zeros(())
        if self.reference is not None:
            with torch.no_grad():
                logits = self.reference(ids).logits
            before = log_probs_of(logits, sampled, temperature=rows.temperature)
            kl = kl_to_reference(found, before, sampled.is_sampled)
        (loss + rows.kl * kl).backward()
        self._descend()
        return loss.item(), kl.item()


def _mean(values: Any) -> float:
    numbers = [float(value) for value in values]
    return sum(numbers) / max(1, len(numbers))


def _saved_step(path: Path) -> int:
    """Read the step of a saved state; 0 if there is none, or if `Loop.resume` will reject it."""
    try:
        with safe_open(path, framework="pt") as file:
            return int(json.loads((file.metadata() or {})["progress"])["step"])
    except (OSError, SafetensorError, LookupError, ValueError):
        return 0
