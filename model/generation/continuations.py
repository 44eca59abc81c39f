"""Continuations of prompts that a decoder samples together, with their log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headlight.model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class Continuations:
    """Sampled continuations of prompts of one length.

    ``ids`` (row, prompt + token) holds prompts and continuations, and the stop token after a row's
    end. ``log_probs`` (row, token) is that of each token when it was sampled, in nats;
    ``is_sampled`` (row, token) is False after a row's stop token. ``has_ended`` (row) is whether
    the row has sampled it. ``counts`` (row) is how often the row was sampled; None: each once.
    """

    ids: Tensor
    log_probs: Tensor
    is_sampled: Tensor
    has_ended: Tensor
    counts: Tensor | None = None

    @property
    def row_counts(self) -> Int[Tensor, " row"]:
        """The number of times that each row was sampled."""
        return torch.ones_like(self.ids[:, 0]) if self.counts is None else self.counts

    @property
    def weights(self) -> Float[Tensor, "row token"]:
        """The number of times that each token was sampled: the row's, and 0 after the row's end."""
        return self.is_sampled.float() * self.row_counts[:, None]

    @property
    def n_prompt(self) -> int:
        """The number of tokens of a prompt."""
        return self.ids.shape[1] - self.log_probs.shape[1]

    def written(self) -> list[list[int]]:
        """List the ids that each row has sampled, without the stop token."""
        lengths = (self.is_sampled.sum(1) - self.has_ended.long()).tolist()
        rows = self.ids[:, self.n_prompt :].tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]

    def rows(self, chosen: Int[Tensor, " chosen"] | Bool[Tensor, " row"]) -> Continuations:
        """Take some of the rows, by their numbers or by a mask."""
        return Continuations(
            ids=self.ids[chosen],
            log_probs=self.log_probs[chosen],
            is_sampled=self.is_sampled[chosen],
            has_ended=self.has_ended[chosen],
            counts=None if self.counts is None else self.counts[chosen],
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
    cache, ids, inputs = model.new_cache(), prompts, prompts
    has_ended = torch.zeros(len(prompts), dtype=torch.bool, device=prompts.device)
    log_probs, is_sampled = [], []
    for _ in range(n_tokens):
        logits = model.decode(inputs, cache=cache).logits[:, -1].float()
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
        inputs = drawn[:, None]
        ids = torch.cat([ids, inputs], dim=1)
        if bool(has_ended.all()):
            break
    return Continuations(
        ids=ids,
        log_probs=torch.stack(log_probs, dim=1),
        is_sampled=torch.stack(is_sampled, dim=1),
        has_ended=has_ended,
    )
