"""The recipe `rlhf`: a decoder that learns to write what a --reward model rates highly.

    headlight train rlhf --reward stories-reward --corpus train.txt --out runs/stories-preferred

Each step samples some answers to each of some prompts and rates them. The advantage of an answer is

    r − β · Σ log(π / π_reference)   less the mean of that over the answers to the same prompt,

and the policy gradient makes the better answers of a prompt more probable (Williams 1992; Ziegler
et al. 2019, section 2, https://arxiv.org/abs/1909.08593). Without the penalty (``rows.kl=0``) the
model finds what the reward model mistakes for good. The run stops at ``rows.kl_bound``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.lab.training.batches import Batch, Material, generator_of
from headlight.lab.training.config import BATCH_SETTINGS, LoopConfig, Recipe, require
from headlight.lab.training.loop import Lesson, Loop
from headlight.lab.training.policy_gradient import group_advantages, log_probs_of, policy_loss
from headlight.lab.training.preference import N_ANSWER, N_PROMPT, line_end, prompts_of, rule_score
from headlight.lab.training.recipes import stories
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.loading import load_checkpoint
from headlight.model.corpus import lines, read_documents
from headlight.model.distributions import entropy
from headlight.model.generation.continuations import Continuations, sample_continuations
from headlight.model.tokenizer import Tokenizer
from headlight.model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class RlhfConfig:
    """The settings of the samples and of the penalty.

    A step samples ``answers`` answers, of at most ``n_answer`` tokens, to each of ``prompts``
    prompts of ``n_prompt`` tokens. ``kl`` is β, the weight of the KL divergence from the reference
    in the reward, in units of reward a nat; the run stops when the divergence is above
    ``kl_bound`` nats a sample. ``reward`` and ``reference`` are the folders of the reward model and
    of the frozen model. ``held_out`` rows of text are for validation.

    Raises:
        ValueError: a number is out of its range.
    """

    prompts: int = 8
    answers: int = 4
    n_prompt: int = N_PROMPT
    n_answer: int = N_ANSWER
    kl: float = 0.1
    kl_bound: float = 10.0
    reward: str = ""
    reference: str = ""
    held_out: int = 16

    def __post_init__(self) -> None:
        least = {"prompts": 1, "answers": 2, "n_prompt": 1, "n_answer": 2, "held_out": 1}
        for name, number in least.items():
            require(self, name, getattr(self, name) >= number, f"be at least {number}")
        require(self, "kl", self.kl >= 0, "be at least 0")
        require(self, "kl_bound", self.kl_bound > 0, "be positive")


class RlhfBatches:
    """The prompts of the recipe, and rows of text for validation.

    Raises:
        CorpusError: the corpus has no prompt, or is shorter than two rows.
        ValueError: prompts and answers are longer than the model reads.
    """

    def __init__(self, material: Material[Sequence[str], RlhfConfig]) -> None:
        config, self.tokenizer, self.seed = material.config, material.tokenizer, material.seed
        if config.n_prompt + config.n_answer >= material.max_tokens:
            raise ValueError(
                f"n_prompt ({config.n_prompt}) and n_answer ({config.n_answer}) must be less than "
                f"the model's {material.max_tokens} tokens together"
            )
        self.config = config
        self.known = prompts_of(material.corpus, self.tokenizer, config.n_prompt)
        _, self.held_out = material.text_rows(material.max_tokens).hold_out(config.held_out)

    def prompts(self, step: int) -> Int[Tensor, "row token"]:
        """Return the prompts of a step, each as often as it is answered."""
        chosen = torch.randint(
            len(self.known), (self.config.prompts,), generator=generator_of(self.seed, step)
        )
        return self.known[chosen].repeat_interleave(self.config.answers, dim=0)

    def batch(self, step: int) -> Batch:
        """Return the prompts of a step as a batch without targets."""
        rows = self.prompts(step)
        return Batch.of_rows(rows, torch.zeros_like(rows[:, 1:], dtype=torch.bool))

    def validation(self) -> list[Batch]:
        """Return the held-out rows of text."""
        return self.held_out.once()


def rewards_of(model: Transformer, sampled: Continuations) -> Float[Tensor, " row"]:
    """Rate continuations with a reward model, after the last token before the stop token."""
    with torch.no_grad():
        reward: Tensor | None = model(sampled.ids).reward
    assert reward is not None
    lengths = sampled.is_sampled.sum(dim=1) - sampled.has_ended.long()
    return reward.gather(1, (sampled.n_prompt + lengths - 1)[:, None])[:, 0].float()


def kl_of_samples(
    logits: Float[Tensor, "row all vocab"],
    reference: Float[Tensor, "row all vocab"],
    sampled: Continuations,
) -> Float[Tensor, " row"]:
    """Sum KL(π ‖ π_reference) of the next-token distributions along each sample, in nats.

    Its mean over samples of π is the divergence between the two distributions of whole answers.

    Args:
        logits: of π on ``sampled.ids`` without the last token.
        reference: those of the reference.
        sampled: the answers.
    """
    n_tokens = sampled.log_probs.shape[1]
    policy = logits[:, -n_tokens:].float().log_softmax(dim=-1)
    other = reference[:, -n_tokens:].float().log_softmax(dim=-1)
    by_token = (policy.exp() * (policy - other)).sum(dim=-1)
    return (by_token * sampled.is_sampled).sum(dim=1)


def entropy_of_samples(
    logits: Float[Tensor, "row all vocab"], sampled: Continuations
) -> Float[Tensor, ""]:
    """Average the entropy of the next-token distributions along samples, in nats a token."""
    policy = logits[:, -sampled.log_probs.shape[1] :].float().softmax(dim=-1)
    by_token = entropy(policy, "nats")
    return (by_token * sampled.is_sampled).sum() / sampled.is_sampled.sum()


class RlhfLoop(Loop):
    """Samples, rates and reinforces; see `Loop` for the arguments.

    Raises:
        ValueError: no reward model is named, or one of the models cannot be used.
    """

    batches: RlhfBatches

    def prepare(self) -> None:
        """Load the reward model and the reference."""
        self.rows = self.batches.config
        self.rater = reward_model(self.rows.reward, self.batches.tokenizer).model
        self.reference = load_checkpoint(Path(self.rows.reference)).model
        for frozen in (self.rater, self.reference):
            frozen.to(self.model.vectors.device)
        self.stop_id = line_end(self.batches.tokenizer)

    def less_memory(self) -> str:
        """As `Loop.less_memory`; a step samples its own batch."""
        fewer = max(1, self.rows.prompts // 2)
        return f"answer fewer prompts in a step with --set rows.prompts={fewer}"

    def _learn(self) -> Lesson:
        """Sample, rate and update once; the figures are those of this step's samples."""
        lesson = self._reinforce(self._sample())
        if lesson.figures["kl"] > self.rows.kl_bound:  # this was the last step
            self.config = replace(self.config, steps=self.step + 1)
        return lesson

    def _sample(self) -> Continuations:
        self.model.eval()
        prompts = self.batches.prompts(self.step).to(self.model.vectors.device)
        return sample_continuations(
            self.model,
            prompts,
            n_tokens=self.rows.n_answer,
            stop_id=self.stop_id,
            generator=generator_of(self.config.seed, self.step, 1),
        )

    def _reinforce(self, sampled: Continuations) -> Lesson:
        """Update the weights from rated samples."""
        # 1. Rate the samples, and how far each is from the reference.
        rewards = rewards_of(self.rater, sampled)
        ids, n_tokens = sampled.ids[:, :-1], sampled.log_probs.shape[1]
        with torch.no_grad():
            reference = self.reference(ids).logits
        log_ratio = sampled.log_probs - log_probs_of(reference, sampled)
        penalty = self.rows.kl * (log_ratio * sampled.is_sampled).sum(dim=1)
        # 2. The advantage of each sample over the others of its prompt.
        returns = (rewards - penalty).view(-1, self.rows.answers)
        advantages = group_advantages(returns).flatten()[:, None]
        # 3. Policy gradient. Dropout stays off: the ratio is that of one model.
        self.model.zero_grad()
        logits = self.model(ids).logits
        log_probs = log_probs_of(logits, sampled)
        loss = policy_loss(log_probs, sampled.log_probs, advantages, sampled.is_sampled)
        loss.backward()
        self._descend()
        logits = logits.detach()
        answers = [self.batches.tokenizer.decode(written) for written in sampled.written()]
        figures = {
            "reward": rewards.mean().item(),
            "kl": kl_of_samples(logits, reference, sampled).mean().item(),
            "entropy": entropy_of_samples(logits, sampled).item(),
            "rule": sum(map(rule_score, answers)) / len(answers),
            "answer_tokens": sampled.is_sampled.sum(dim=1).float().mean().item(),
        }
        return Lesson(loss.item(), len(ids) * n_tokens, figures=figures)


def reward_model(folder: str, tokenizer: Tokenizer) -> Checkpoint:
    """Load a reward model that reads the tokens of a policy.

    Raises:
        CheckpointError: the folder is damaged.
        ValueError: none is named, the model has no reward, or it has another tokenizer.
    """
    if not folder:
        raise ValueError("the recipe 'rlhf' needs a reward model; name it with --reward")
    rater = load_checkpoint(Path(folder))
    if not rater.config.has_reward:
        raise ValueError(
            f"{rater.id} is not a reward model; --reward takes a model of the recipe 'reward'"
        )
    if rater.tokenizer.to_json() != tokenizer.to_json():
        raise ValueError(f"the reward model {rater.id} has another tokenizer than the policy")
    return rater


RECIPE = Recipe(
    model=stories.CONFIG,
    rows=RlhfConfig(),
    loop=LoopConfig(
        steps=100,
        optimizer="adamw",
        learning_rate=1e-4,
        warmup=5,
        decay=0.3,
        weight_decay=0.0,
        validate_every=20,
        save_every=10,
    ),
    read=read_documents,
    texts=lines,
    batches=RlhfBatches,
    figures="headlight.lab.evaluation.figures:RlhfFigures",
    begins_from="stories",
    takes_reward=True,
    make_loop=RlhfLoop,
    is_sampled=True,
    unread=lambda rows: BATCH_SETTINGS,
)
