"""Writing on: draw the next token, append it, read it, and again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.transformer import Cache, Transformer


class NonFiniteLogits(ValueError):
    """Logits that hold NaN or an infinity: nothing can be drawn from them."""


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


@dataclass(frozen=True, kw_only=True)
class GeneratedToken:
    """A token that was written, and how the model came to it.

    ``distribution`` (vocab) is what it was drawn from, ``model_distribution`` what the model said
    before temperature, top-k and top-p. ``is_forced``: it was given, not drawn. ``row`` holds what
    was captured, by site, of the one query that predicted it: without axes for batch and query.
    """

    id: int
    distribution: Float[Tensor, " vocab"]
    model_distribution: Float[Tensor, " vocab"]
    is_forced: bool = False
    row: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def probability(self) -> float:
        """In the distribution that it was drawn from: 0 where a forced one could not be drawn."""
        return float(self.distribution[self.id])

    @property
    def model_probability(self) -> float:
        """In the model's own distribution."""
        return float(self.model_distribution[self.id])

    @property
    def rank(self) -> int:
        """Its place by the model's own probability, from 1; of equals the smaller id is first."""
        return self.likeliest().index(self.id) + 1

    def likeliest(self, count: int | None = None) -> list[int]:
        """The ids of the likeliest tokens, by the model's own probability.

        Args:
            count: how many; None: all.
        """
        order = self.model_distribution.argsort(descending=True, stable=True)
        ids: list[int] = order[:count].tolist()
        return ids


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
        kept[0] = True  # a p below what float32 can tell from 0 would leave nothing
    allowed = torch.zeros_like(kept).index_put((order,), kept)
    return probabilities * allowed / (probabilities * allowed).sum()


def generate(
    model: Transformer,
    ids: Sequence[int],
    *,
    n_tokens: int,
    sampling: Sampling,
    seed: int = 0,
    forced: Sequence[int] = (),
    skip: int = 0,
    stop_id: int | None = None,
    use_cache: bool = True,
    capture: Sequence[str] = (),
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Iterator[GeneratedToken]:
    """Yield up to `n_tokens` tokens that continue `ids`.

    Args:
        model: in eval mode.
        ids: the tokens before, the start token included; at least one.
        n_tokens: how many to draw at most; the model's `max_tokens` ends the text too.
        sampling: how to draw.
        seed: of the random numbers, drawn on the CPU so that every device gives the same.
        forced: tokens to take in place of the first drawn ones. Their random numbers are drawn
            all the same, so the tokens after them are those of a run that drew what is forced.
        skip: how many of the forced tokens are not yielded; they are read at once, which is much
            faster than one by one.
        stop_id: a token that ends the text after it is yielded.
        use_cache: keep keys and values instead of reading the whole text at every step.
        capture: sites, or globs over them, to keep the last query's row of, at every step.
        layers: of the sites in a layer, only those in these layers.
        heads: of what has a head axis, only these heads, in this order.

    Raises:
        ValueError: there is no token to continue, or more than the model can read; or the model
            is no decoder, or a forced token is none of its own.
        UnknownSite, UnknownLayer, UnknownHead: there is no such thing to capture.
        NonFiniteLogits: the model's weights are damaged.
    """
    _require_continuable(model, ids, forced)
    limit = model.config.max_tokens
    axes = {site.name: site.axes for site in model.sites}
    generator = torch.Generator().manual_seed(seed)
    text = [*ids, *forced[:skip]]
    for _ in forced[:skip]:  # as many random numbers as a draw takes, whatever it draws from
        torch.multinomial(torch.ones(model.config.vocab_size), 1, generator=generator)
    if stop_id in forced[:skip]:
        return
    cache = model.new_cache() if use_cache else None
    for step in range(skip, min(n_tokens, limit - len(ids))):
        check()
        with torch.inference_mode():
            if cache and capture:
                _read(model, text[len(cache[0]) : -1], cache)
            unread = text[len(cache[0]) :] if cache else text
            with model.capture(capture, layers=layers, heads=heads) as captured:
                logits = _read(model, unread, cache)[-1].float().cpu()
            row = {site: _last_query(tensor, axes[site]) for site, tensor in captured.items()}
            distribution = next_token_distribution(logits, sampling)
            drawn = int(torch.multinomial(distribution, 1, generator=generator))
            token = GeneratedToken(
                id=forced[step] if step < len(forced) else drawn,
                distribution=distribution,
                model_distribution=next_token_distribution(logits, Sampling()),
                is_forced=step < len(forced),
                row=row,
            )
        text.append(token.id)
        yield token
        if token.id == stop_id:
            return


def _require_continuable(model: Transformer, ids: Sequence[int], forced: Sequence[int]) -> None:
    if (kind := model.config.kind) != "decoder":
        raise ValueError(f"a model of kind {kind!r} continues no text; generation needs a decoder")
    limit = model.config.max_tokens
    if not 1 <= len(ids) <= limit:
        raise ValueError(f"generation continues 1 to {limit} tokens, not {len(ids)}")
    n_ids = model.config.vocab_size
    for token in forced:
        if not 0 <= token < n_ids:
            raise ValueError(f"there is no token {token} to force; the ids are 0 to {n_ids - 1}")


def _read(
    model: Transformer, ids: Sequence[int], cache: Cache | None
) -> Float[Tensor, "query vocab"]:
    """The logits after every token of `ids`; the cache is extended by them.

    Raises:
        NonFiniteLogits: nothing could be drawn from the last ones.
    """
    if not ids:
        return model.vectors.new_empty(0, model.config.vocab_size)
    logits: Tensor = model(torch.tensor([ids], device=model.vectors.device), cache=cache).logits[0]
    if not logits[-1].isfinite().all():
        raise NonFiniteLogits("the logits hold NaN or an infinity, so no token can be drawn")
    return logits


def _last_query(tensor: Tensor, axes: tuple[str, ...]) -> Tensor:
    """What a captured tensor holds of the last query of its one text; on the CPU."""
    for axis in ("query", "batch"):  # from the right, so that the axis before keeps its number
        if axis in axes:
            tensor = tensor.select(axes.index(axis), -1)
    return tensor.cpu()
