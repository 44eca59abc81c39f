"""Writing on: draw the next token, append it, read it, and again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is drawn.

    ``temperature`` divides the logits: 0 takes the most likely token, 1 the model's own
    distribution. ``top_k`` keeps the k most likely tokens; ``top_p`` the fewest whose
    probabilities reach p (Holtzman et al. 2020, https://arxiv.org/abs/1904.09751).

    Raises:
        ValueError: a number is out of its range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature ({self.temperature}) must be 0 or more")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k ({self.top_k}) must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p ({self.top_p}) must lie in (0, 1]")


@dataclass(frozen=True)
class GeneratedToken:
    """A drawn token and the distribution (vocab) it was drawn from."""

    id: int
    probability: float
    distribution: Float[Tensor, " vocab"]


def next_token_distribution(
    logits: Float[Tensor, " vocab"], sampling: Sampling
) -> Float[Tensor, " vocab"]:
    """The probabilities to draw from, on the CPU: temperature first, then top-k, then top-p."""
    logits = logits.float().cpu()  # MPS has no float64
    if sampling.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).float()
    distances = (logits - logits.max()).double()  # at most 0, so no temperature overflows
    probabilities = (distances / sampling.temperature).softmax(dim=-1).float()
    order = probabilities.argsort(descending=True, stable=True)
    kept = torch.ones_like(order, dtype=torch.bool)
    if sampling.top_k is not None:
        kept[sampling.top_k :] = False
    if sampling.top_p is not None:
        ranked = probabilities[order] * kept
        ranked = ranked / ranked.sum()
        kept &= ranked.cumsum(dim=0) - ranked < sampling.top_p
    allowed = torch.zeros_like(kept).index_put((order,), kept)
    return probabilities * allowed / (probabilities * allowed).sum()


def generate(
    model: Transformer,
    ids: Sequence[int],
    *,
    n_tokens: int,
    sampling: Sampling,
    seed: int = 0,
    stop_id: int | None = None,
    use_cache: bool = True,
) -> Iterator[GeneratedToken]:
    """Yield up to `n_tokens` tokens that continue `ids`.

    Args:
        model: in eval mode.
        ids: the tokens before, the start token included; at least one.
        n_tokens: how many to draw at most; the model's `max_tokens` ends the text too.
        sampling: how to draw.
        seed: of the random numbers, drawn on the CPU so that every device gives the same.
        stop_id: a token that ends the text after it is yielded.
        use_cache: keep keys and values instead of reading the whole text at every step.

    Raises:
        ValueError: there is no token to continue, or more than the model can read; or the model
            is no decoder.
    """
    if (kind := model.config.kind) != "decoder":
        raise ValueError(f"a model of kind {kind!r} continues no text; generation needs a decoder")
    limit = model.config.max_tokens
    if not 1 <= len(ids) <= limit:
        raise ValueError(f"generation continues 1 to {limit} tokens, not {len(ids)}")
    generator = torch.Generator().manual_seed(seed)
    device = model.vectors.device
    text = list(ids)
    cache = model.new_cache() if use_cache else None
    for _ in range(min(n_tokens, limit - len(ids))):
        unread = text[len(cache[0]) :] if cache else text
        with torch.inference_mode():
            logits = model(torch.tensor([unread], device=device), cache=cache).logits[0, -1]
            distribution = next_token_distribution(logits, sampling)
            drawn = int(torch.multinomial(distribution, 1, generator=generator))
        text.append(drawn)
        yield GeneratedToken(drawn, float(distribution[drawn]), distribution)
        if drawn == stop_id:
            return
