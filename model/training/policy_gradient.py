"""Policy gradient for a decoder: sampled continuations, advantages, the loss and a KL estimate.

The policy is the model's distribution over the next token. With a reward r of a whole continuation
and a baseline b that does not depend on it,

    ∇ E[r] = E[(r − b) · Σ ∇ log π(token | the tokens before it)]

(REINFORCE; Williams 1992, https://doi.org/10.1007/BF00992696, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headlight.model.transformer import Transformer

LogProbs = Float[Tensor, "row token"]
IsSampled = Bool[Tensor, "row token"]


@dataclass(frozen=True, kw_only=True)
class Continuations:
    """Sampled continuations of prompts of one length.

    ``ids`` (row, prompt + token) holds prompts and continuations, and the stop token after a row's
    end. ``log_probs`` (row, token) is that of each token when it was sampled, in nats;
    ``is_sampled`` (row, token) is False after a row's stop token. ``has_ended`` (row) is whether
    the row has sampled it.
    """

    ids: Tensor
    log_probs: Tensor
    is_sampled: Tensor
    has_ended: Tensor

    @property
    def n_prompt(self) -> int:
        """The number of tokens of a prompt."""
        return self.ids.shape[1] - self.log_probs.shape[1]

    def written(self) -> list[list[int]]:
        """List the ids that each row has sampled, without the stop token."""
        lengths = (self.is_sampled.sum(1) - self.has_ended.long()).tolist()
        rows = self.ids[:, self.n_prompt :].tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]

    def rows(self, chosen: Int[Tensor, " row"] | slice) -> Continuations:
        """Take some of the rows."""
        return Continuations(
            ids=self.ids[chosen],
            log_probs=self.log_probs[chosen],
            is_sampled=self.is_sampled[chosen],
            has_ended=self.has_ended[chosen],
        )


@torch.no_grad()
def sample_continuations(
    model: Transformer,
    prompts: Int[Tensor, "row prompt"],
    *,
    n_tokens: int,
    stop_id: int,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Continuations:
    """Continue all prompts together, with one cache of keys and values.

    Args:
        model: a decoder; dropout is the caller's to switch off.
        prompts: start token included, all of one length.
        n_tokens: the most tokens of a continuation.
        stop_id: the token after which a row ends.
        temperature: divides the logits; 0 takes the likeliest token.
        generator: of the random numbers, on the device of the prompts.

    Raises:
        ValueError: the temperature is negative.
    """
    if temperature < 0:
        raise ValueError(f"temperature ({temperature}) must be at least 0")
    cache, ids, read = model.new_cache(), prompts, prompts
    has_ended = torch.zeros(len(prompts), dtype=torch.bool, device=prompts.device)
    log_probs, is_sampled = [], []
    for _ in range(n_tokens):
        logits = model.decode(read, cache=cache).logits[:, -1].float()
        if temperature == 0:
            policy = logits.log_softmax(-1)
            drawn = policy.argmax(-1)
        else:
            policy = (logits / temperature).log_softmax(-1)
            drawn = torch.multinomial(policy.exp(), 1, generator=generator)[:, 0]
        drawn = drawn.masked_fill(has_ended, stop_id)
        log_probs.append(policy.gather(1, drawn[:, None])[:, 0])
        is_sampled.append(~has_ended)
        has_ended = has_ended | (drawn == stop_id)
        read = drawn[:, None]
        ids = torch.cat([ids, read], dim=1)
        if bool(has_ended.all()):
            break
    return Continuations(
        ids=ids,
        log_probs=torch.stack(log_probs, dim=1),
        is_sampled=torch.stack(is_sampled, dim=1),
        has_ended=has_ended,
    )


def log_probs_of(
    logits: Float[Tensor, "row all vocab"], sampled: Continuations, *, temperature: float = 1.0
) -> LogProbs:
    """Compute the log-probability, in nats, of each sampled token under another model.

    Args:
        logits: of that model on ``sampled.ids`` without the last token.
        sampled: the continuations.
        temperature: the one they were sampled at; divides the logits.
    """
    n_tokens = sampled.log_probs.shape[1]
    targets = sampled.ids[:, -n_tokens:]
    logits = logits[:, -n_tokens:].float() / temperature
    return -F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(
        targets
    )


def group_advantages(
    rewards: Float[Tensor, "prompt sample"], *, is_normalised: bool = False
) -> Float[Tensor, "prompt sample"]:
    """Subtract from each reward the mean of its prompt's samples.

    Normalised, also divide by their standard deviation, as in GRPO (Shao et al. 2024, section
    4.1.2, https://arxiv.org/abs/2402.03300). Samples that all have one reward have advantage 0.
    """
    advantages = rewards - rewards.mean(dim=1, keepdim=True)
    if is_normalised:
        advantages = advantages / (rewards.std(dim=1, keepdim=True, correction=0) + 1e-6)
    return advantages


def policy_loss(
    log_probs: LogProbs,
    sampled_log_probs: LogProbs,
    advantages: Float[Tensor, "row column"],
    is_sampled: IsSampled,
    *,
    clip: float | None = None,
) -> Float[Tensor, ""]:
    """Compute the loss whose gradient is minus the policy gradient, averaged over the tokens.

    −mean of ratio · advantage, with ratio = π/π_sampled for each token. If the model has not
    changed since it sampled, its gradient is that of REINFORCE. A clip ε makes it

        −mean of min(ratio · advantage, clamp(ratio, 1 − ε, 1 + ε) · advantage)

    (Schulman et al. 2017, equation 7, https://arxiv.org/abs/1707.06347).

    Args:
        log_probs: under the model that is trained.
        sampled_log_probs: under the model that sampled, without gradient.
        advantages: (row, 1) of each row, or (row, token) of each token.
        is_sampled: the tokens that count.
        clip: ε; None: no clipping.
    """
    ratio = (log_probs - sampled_log_probs).exp()
    gain = ratio * advantages
    if clip is not None:
        gain = torch.minimum(gain, ratio.clamp(1 - clip, 1 + clip) * advantages)
    return -(gain * is_sampled).sum() / is_sampled.sum()


def kl_to_reference(
    log_probs: LogProbs, reference: LogProbs, is_sampled: IsSampled
) -> Float[Tensor, ""]:
    """Estimate KL(π ‖ π_reference) in nats a token, from tokens that π sampled.

    The mean of r − 1 − log r with r = π_reference/π, which is unbiased and never negative
    (Schulman 2020, http://joschu.net/blog/kl-approx.html, estimator k3).

    Args:
        log_probs: under π.
        reference: under the reference, without gradient.
        is_sampled: the tokens that count.
    """
    log_ratio = reference - log_probs
    return ((log_ratio.exp() - 1 - log_ratio) * is_sampled).sum() / is_sampled.sum()
