"""Policy gradient for a decoder: sampled continuations, advantages and the loss.

The policy is the model's distribution over the next token. With a reward r of a whole continuation
and a baseline b that does not depend on it,

    ∇ E[r] = E[(r − b) · Σ ∇ log π(token | the tokens before it)]

(REINFORCE; Williams 1992, https://doi.org/10.1007/BF00992696, section 4).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headlight.model.generation.continuations import Continuations
from headlight.model.transformer import Transformer

LogProbs = Float[Tensor, "row token"]
TokenWeights = Float[Tensor, "row token"] | Bool[Tensor, "row token"]


@torch.no_grad()
def sample_tree(
    model: Transformer,
    prompts: Int[Tensor, "prompt token"],
    *,
    n_samples: int,
    n_tokens: int,
    stop_id: int,
    temperature: float = 1.0,
    generator: torch.Generator | None,
) -> Continuations:
    """Sample several continuations of each prompt, and compute what they have in common once.

    The samples are independent, as those of `sample_continuations`. Samples of a prompt that are
    equal so far share one row with their count, and a row whose samples differ in the next token
    becomes one row for each such token. A model that is sure of most tokens so writes many
    samples at the cost of a few.

    Args:
        model: a decoder; dropout is the caller's to switch off.
        prompts: start token included, all of one length.
        n_samples: the samples of each prompt.
        n_tokens: the most tokens of a continuation.
        stop_id: the token after which a sample ends.
        temperature: divides the logits; positive.
        generator: of the random numbers, on the device of the prompts.

    Returns:
        The different continuations in the order of their prompts, with their counts, which add up
        to `n_samples` for each prompt.
    """
    device, n_prompt = prompts.device, prompts.shape[1]
    cache, inputs = model.new_cache(), prompts
    # The living rows: their prompt, count, ids and log-probabilities so far.
    owner = torch.arange(len(prompts), device=device)
    counts = torch.full_like(owner, n_samples)
    ids, log_probs = prompts, torch.zeros(len(prompts), 0, device=device)
    ended: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for number in range(n_tokens):
        # 1. Draw a token for each sample, and find the different ones of each row.
        policy = model.decode(inputs, cache=cache).logits[:, -1].float() / temperature
        policy = policy.log_softmax(-1)
        parents = torch.arange(len(policy), device=device).repeat_interleave(counts)
        drawn = _draw(policy, parents, generator)
        drawn, counts = torch.unique(parents * policy.shape[1] + drawn, return_counts=True)
        parents, tokens = drawn // policy.shape[1], drawn % policy.shape[1]
        # 2. Make a row of each.
        owner = owner[parents]
        ids = torch.cat([ids[parents], tokens[:, None]], dim=1)
        log_probs = torch.cat([log_probs[parents], policy[parents, tokens][:, None]], dim=1)
        # 3. Set those aside that have ended.
        lives = tokens != stop_id if number + 1 < n_tokens else torch.zeros_like(tokens).bool()
        ended.append((owner[~lives], counts[~lives], ids[~lives], log_probs[~lives]))
        owner, counts, ids, log_probs = owner[lives], counts[lives], ids[lives], log_probs[lives]
        if not len(owner):
            break
        kept = parents[lives]
        if len(kept) != len(policy) or not torch.equal(
            kept, torch.arange(len(kept), device=device)
        ):
            for layer in cache:
                layer.self_attention.select(kept)
        inputs = ids[:, -1:]
    width = ended[-1][2].shape[1]
    order = torch.cat([each[0] for each in ended]).argsort(stable=True)
    lengths = torch.cat([torch.full_like(each[0], each[3].shape[1]) for each in ended])[order]
    whole = torch.cat(
        [F.pad(each[2], (0, width - each[2].shape[1]), value=stop_id) for each in ended]
    )
    chances = torch.cat(
        [F.pad(each[3], (0, width - n_prompt - each[3].shape[1])) for each in ended]
    )
    whole, chances = whole[order], chances[order]
    last = whole.gather(1, n_prompt + lengths[:, None] - 1)[:, 0]
    return Continuations(
        ids=whole,
        log_probs=chances,
        is_sampled=torch.arange(width - n_prompt, device=device) < lengths[:, None],
        has_ended=last == stop_id,
        counts=torch.cat([each[1] for each in ended])[order],
    )


def _draw(
    policy: Float[Tensor, "row vocab"],
    parents: Int[Tensor, " sample"],
    generator: torch.Generator | None,
) -> Int[Tensor, " sample"]:
    """Draw a token for each sample from the log-probabilities of its row, by inverse transform."""
    sums = policy.double().exp().cumsum(-1)
    n_rows, n_vocab = sums.shape
    # The rows one after another, so that row r has the chances from r to r + 1.
    ladder = sums / sums[:, -1:] + torch.arange(n_rows, device=sums.device)[:, None]
    chances = torch.rand(
        len(parents), generator=generator, device=policy.device, dtype=torch.float64
    )
    # right=True: a token without probability is not drawn, even by a chance of 0.
    cells = torch.searchsorted(ladder.flatten(), parents + chances, right=True)
    return (cells - parents * n_vocab).clamp(max=n_vocab - 1)


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


def shared_log_probs(model: Transformer, sampled: Continuations, *, temperature: float) -> LogProbs:
    """Compute what `log_probs_of` does, with one pass over the beginnings that rows share.

    The rows are cut at one place: the different beginnings are read once, and then the rest of
    every row, behind the cached keys and values of its beginning. The place is the one with the
    fewest tokens to read.

    Args:
        model: a decoder whose positions are absolute; with gradients, as the caller asks.
        sampled: the continuations.
        temperature: the one they were sampled at; divides the logits.
    """
    ids, n_prompt = sampled.ids[:, :-1], sampled.n_prompt
    ordered = ids.unique(dim=0)
    n_beginnings = 1 + (ordered[1:] != ordered[:-1]).cummax(1).values.sum(0)
    saved = torch.arange(1, ids.shape[1] + 1, device=ids.device) * (len(ids) - n_beginnings)
    cut = n_prompt + int(saved[n_prompt - 1 : -1].argmax())
    beginnings, parents = ids[:, :cut].unique(dim=0, return_inverse=True)
    cache = model.new_cache()
    first = model.decode(beginnings, cache=cache).logits[:, n_prompt - 1 :]
    for layer in cache:
        layer.self_attention.select(parents)
    rest = model.decode(ids[:, cut:], cache=cache).logits
    first, rest = ((each.float() / temperature).log_softmax(-1) for each in (first, rest))
    inside = first[:, :-1].gather(2, beginnings[:, n_prompt:, None])[..., 0]
    rest = torch.cat([first[parents, -1:], rest], dim=1)
    drawn = rest.gather(2, sampled.ids[:, cut:, None])[..., 0]
    return torch.cat([inside[parents], drawn], dim=1)


def group_advantages(rewards: Float[Tensor, "prompt sample"]) -> Float[Tensor, "prompt sample"]:
    """Compute how many standard deviations each reward is above the mean of its prompt's samples.

    Samples that all have one reward have advantage 0. Shao et al. 2024, section 4.1.2 (GRPO),
    https://arxiv.org/abs/2402.03300.
    """
    deviation = rewards.std(dim=1, keepdim=True, correction=0)
    return (rewards - rewards.mean(dim=1, keepdim=True)) / (deviation + 1e-6)


def policy_loss(
    log_probs: LogProbs,
    sampled_log_probs: LogProbs,
    advantages: Float[Tensor, "row column"],
    weights: TokenWeights,
    *,
    clip: float | None = None,
) -> Float[Tensor, ""]:
    """Compute the loss whose gradient is minus the policy gradient, averaged over the tokens.

    The loss is −mean of ratio · advantage, with ratio = π/π_sampled for each token. If the model
    has not changed since it sampled, its gradient is that of REINFORCE. With a clip ε the loss is

        −mean of min(ratio · advantage, clamp(ratio, 1 − ε, 1 + ε) · advantage)

    (Schulman et al. 2017, equation 7, https://arxiv.org/abs/1707.06347).

    Args:
        log_probs: under the model that is trained.
        sampled_log_probs: under the model that sampled, without gradient.
        advantages: (row, 1) of each row, or (row, token) of each token.
        weights: how often each token counts, such as `Continuations.weights`.
        clip: ε; None: no clipping.
    """
    ratio = (log_probs - sampled_log_probs).exp()
    gain = ratio * advantages
    if clip is not None:
        gain = torch.minimum(gain, ratio.clamp(1 - clip, 1 + clip) * advantages)
    return -(gain * weights).sum() / weights.sum()
