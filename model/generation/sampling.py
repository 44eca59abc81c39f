"""Autoregressive generation: sample the next token, append it, repeat.

`generate` continues one text; `decode_together` continues several texts by one token in one pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.interventions.intervene import bound, intervene
from headlight.model.interventions.intervention import Intervention
from headlight.model.layers import LayerCache
from headlight.model.served import RowCapture, Writer
from headlight.model.transformer import Cache, Transformer


class NonFiniteLogits(ValueError):
    """The logits hold NaN or an infinity, so no token can be sampled from them."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The parameters of sampling.

    ``temperature`` divides the logits: 0 is greedy decoding, 1 samples from the model's own
    distribution. ``top_k`` keeps the k most likely tokens; ``top_p`` the fewest whose
    probabilities reach p (nucleus sampling; Holtzman et al. 2020,
    https://arxiv.org/abs/1904.09751). ``repetition_penalty`` above 1 makes the tokens of the text
    so far less likely (`penalised`).

    Raises:
        ValueError: a number is out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature ({self.temperature}) must be 0 or more")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k ({self.top_k}) must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p ({self.top_p}) must lie in (0, 1]")
        if not 0 < self.repetition_penalty < math.inf:
            raise ValueError(f"repetition_penalty ({self.repetition_penalty}) must be positive")


@dataclass(frozen=True, kw_only=True)
class GeneratedToken:
    """A generated token, with its probabilities and the captured rows of its query.

    ``distribution`` (vocab) is the distribution it was sampled from, ``model_distribution`` the
    model's own, before temperature, top-k and top-p. ``is_forced``: the token was given, not
    sampled. ``row`` holds the captured tensors by site for the query that predicted the token,
    without batch and query axes.
    """

    id: int
    distribution: Float[Tensor, " vocab"]
    model_distribution: Float[Tensor, " vocab"]
    is_forced: bool = False
    row: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def probability(self) -> float:
        """Its probability in `distribution`; 0 for a forced token that could not be sampled."""
        return float(self.distribution[self.id])

    @property
    def model_probability(self) -> float:
        """Its probability in the model's own distribution."""
        return float(self.model_distribution[self.id])

    @property
    def rank(self) -> int:
        """Its rank by the model's own probability, from 1; of equals the smaller id is first."""
        return self.likeliest().index(self.id) + 1

    def likeliest(self, count: int | None = None) -> list[int]:
        """Return the ids of the most likely tokens by the model's own probability.

        Args:
            count: how many; None: all.
        """
        order = self.model_distribution.argsort(descending=True, stable=True)
        ids: list[int] = order[:count].tolist()
        return ids


def penalised(
    logits: Float[Tensor, " vocab"], ids: Sequence[int], penalty: float
) -> Float[Tensor, " vocab"]:
    """Divide the positive logits of some tokens by a penalty, and multiply the negative ones by it.

    Keskar et al. 2019, section 4.1, https://arxiv.org/abs/1909.05858; the negative ones are
    multiplied, as dividing would make them likelier.

    Args:
        logits: of the next token.
        ids: the tokens of the text so far.
        penalty: 1 changes nothing.
    """
    if penalty == 1 or not ids:
        return logits
    known = torch.tensor(sorted(set(ids)), device=logits.device)
    values = logits[known]
    return logits.index_copy(0, known, torch.where(values > 0, values / penalty, values * penalty))


def next_token_distribution(
    logits: Float[Tensor, " vocab"], sampling: Sampling
) -> Float[Tensor, " vocab"]:
    """Return the distribution to sample from: temperature first, then top-k, then top-p."""
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
        kept[0] = True  # a p that float32 rounds to 0 would leave nothing
    allowed = torch.zeros_like(kept).index_put((order,), kept)
    return probabilities * allowed / (probabilities * allowed).sum()


class TransformerWriter:
    """Decodes with a `Transformer`; see `Writer`.

    Args:
        model: a decoder in eval mode.
        interventions: act in every pass. With a `SiteEdit` every text has its own pass.

    Raises:
        ValueError: the model is not a decoder.
    """

    def __init__(self, model: Transformer, interventions: Sequence[Intervention] = ()) -> None:
        if (kind := model.config.kind) != "decoder":
            raise ValueError(f"a model of kind {kind!r} cannot generate; use a decoder")
        self.model, self.config = model, model.config
        self.interventions = bound(model.sites, interventions) if interventions else []

    def new_cache(self) -> Cache:
        """Return an empty cache."""
        return self.model.new_cache()

    def n_cached(self, cache: Cache) -> int:
        """Return the number of tokens in a cache."""
        return len(cache[0])

    def extend(self, cache: Cache, ids: Sequence[int]) -> None:
        """Read tokens into a cache."""
        with torch.inference_mode(), self._intervening([cache]):
            self.model.decode(torch.tensor([ids], device=self.model.vectors.device), cache=cache)

    def step(
        self, caches: Sequence[Cache], ids: Sequence[int], captures: Sequence[RowCapture]
    ) -> tuple[Float[Tensor, "row vocab"], list[dict[str, Tensor]]]:
        """As `Writer.step`.

        The caches are padded at their beginning to the longest, and the padding is masked, so that
        a row has the numbers of a pass by itself, to 1e-5 in float32.
        """
        model = self.model
        with torch.inference_mode(), ExitStack() as stack:
            stack.enter_context(self._intervening(caches))
            captured = [
                stack.enter_context(
                    model.capture(capture.sites, layers=capture.layers, heads=capture.heads)
                )
                for capture in captures
            ]
            lengths = [len(cache[0]) for cache in caches]
            device = model.vectors.device
            rows = torch.tensor([[last] for last in ids], device=device)
            if len(caches) == 1:
                logits = model.decode(rows, cache=caches[0]).logits[:, -1]
            else:
                cache = _joined(caches)
                starts = torch.tensor(lengths, device=device)
                is_token = None
                if min(lengths) < max(lengths):
                    columns = torch.arange(max(lengths) + 1, device=device)
                    is_token = columns >= max(lengths) - starts[:, None]
                start = starts if is_token is not None else lengths[0]
                logits = model.decode(rows, is_token=is_token, cache=cache, start=start).logits
                logits = logits[:, -1]
                _append_last(cache, caches)
            logits = logits.float().cpu()
        axes = {site.name: site.axes for site in model.sites}
        return logits, [
            {
                site: last_query(tensor, axes[site], number, lengths[number] + 1)
                for site, tensor in tensors.items()
            }
            for number, tensors in enumerate(captured)
        ]

    def _intervening(self, caches: Sequence[Cache]) -> AbstractContextManager[None]:
        """Return the interventions of a pass after the tokens of some caches.

        Raises:
            ValueError: an edit of a site acts in a pass of several texts.
        """
        if not self.interventions:
            return nullcontext()
        if len(caches) > 1 and not all(each.shares_pass for each in self.interventions):
            raise ValueError("texts with edits of sites have a pass each")
        start = len(caches[0][0])
        return intervene(self.model, bound(self.model.sites, self.interventions, start))


class Continuation:
    """A text that is being continued: its tokens so far, and their keys and values.

    Args:
        model: a decoder in eval mode, or the writer of any model.
        ids: the prompt, start token included; at least one token.
        n_tokens: the maximum number of tokens; the model's `max_tokens` also ends the text.
        sampling: the parameters of sampling.
        seed: of the random numbers, which are drawn on the CPU so that every device gives the same.
        forced: tokens that replace the first sampled ones. Their random numbers are drawn all the
            same, so the tokens after them are those of a run that sampled the forced ones.
        skip: how many of the forced tokens are not yielded; they are read in one pass, which is
            much faster than one by one.
        stop_id: the token after which the text ends, or several.
        is_over: called with the tokens after the prompt; whether the text ends with them, as it
            does after a stop string.
        capture: site names or globs; at every step the last query's row is captured.
        layers: only the sites in these layers, and those outside the layers; None: all.
        heads: only these heads of arrays with a head axis, in this order; None: all.

    Raises:
        ValueError: the prompt is empty or longer than the model reads, the model is not a decoder,
            or a forced token is not in its vocabulary.
    """

    def __init__(
        self,
        model: Transformer | Writer,
        ids: Sequence[int],
        *,
        n_tokens: int,
        sampling: Sampling,
        seed: int = 0,
        forced: Sequence[int] = (),
        skip: int = 0,
        stop_id: int | Collection[int] | None = None,
        is_over: Callable[[Sequence[int]], bool] | None = None,
        capture: Sequence[str] = (),
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> None:
        writer = TransformerWriter(model) if isinstance(model, Transformer) else model
        _require_continuable(writer, ids, forced)
        self.writer = writer
        self.sampling, self.forced = sampling, forced
        self.stop_ids = frozenset(stop_id if isinstance(stop_id, Collection) else [stop_id])
        self.is_over, self.n_prompt = is_over, len(ids)
        self.capture = RowCapture(capture, layers, heads)
        self.text = [*ids, *forced[:skip]]
        self.cache = writer.new_cache()
        self.step = skip
        self.n_steps = min(n_tokens, writer.config.max_tokens - len(ids))
        self.has_stopped = not self.stop_ids.isdisjoint(forced[:skip])
        self.generator = torch.Generator().manual_seed(seed)
        for _ in forced[:skip]:  # a draw takes as many random numbers from any distribution
            torch.multinomial(torch.ones(writer.config.vocab_size), 1, generator=self.generator)

    @property
    def is_finished(self) -> bool:
        """Whether no more tokens follow."""
        return self.has_stopped or self.step >= self.n_steps

    def read(self) -> None:
        """Read all tokens but the last into the cache, if they are not there yet."""
        unread = self.text[self.writer.n_cached(self.cache) : -1]
        if unread:
            self.writer.extend(self.cache, unread)

    def take(self, logits: Float[Tensor, " vocab"], row: Mapping[str, Tensor]) -> GeneratedToken:
        """Draw the next token and append it.

        Args:
            logits: after the last token, on the CPU.
            row: the captured tensors of its query, by site.

        Raises:
            NonFiniteLogits: the model's weights are damaged.
        """
        if not logits.isfinite().all():
            raise NonFiniteLogits("the logits hold NaN or an infinity, so no token can be drawn")
        penalty = self.sampling.repetition_penalty
        distribution = next_token_distribution(penalised(logits, self.text, penalty), self.sampling)
        drawn = int(torch.multinomial(distribution, 1, generator=self.generator))
        is_forced = self.step < len(self.forced)
        token = GeneratedToken(
            id=self.forced[self.step] if is_forced else drawn,
            distribution=distribution,
            model_distribution=next_token_distribution(logits, Sampling()),
            is_forced=is_forced,
            row=row,
        )
        self.text.append(token.id)
        self.step += 1
        self.has_stopped = token.id in self.stop_ids or self._is_over()
        return token

    def _is_over(self) -> bool:
        return self.is_over is not None and self.is_over(self.text[self.n_prompt :])


def decode_together(texts: Sequence[Continuation]) -> Iterator[GeneratedToken | NonFiniteLogits]:
    """Continue each text by one token, all in one pass.

    A row has the numbers of a pass by itself, to 1e-5 in float32.

    Args:
        texts: at least one, of one model; none is finished.

    Yields:
        The token of each text, or the reason that there is none.
    """
    for text in texts:
        text.read()
    logits, rows = texts[0].writer.step(
        [text.cache for text in texts],
        [text.text[-1] for text in texts],
        [text.capture for text in texts],
    )
    for number, text in enumerate(texts):
        try:
            yield text.take(logits[number], rows[number])
        except NonFiniteLogits as error:
            yield error


def _joined(caches: Sequence[Cache]) -> Cache:
    """Join the caches of all rows, each padded at its beginning to the longest."""
    joined: Cache = []
    for layers in zip(*caches, strict=True):
        parts = [layer.self_attention for layer in layers]
        layer = LayerCache()
        layer.self_attention.keys = _padded([part.keys for part in parts])
        layer.self_attention.values = _padded([part.values for part in parts])
        joined.append(layer)
    return joined


def _padded(rows: Sequence[Tensor | None]) -> Tensor | None:
    """Rows of (1, head, token, d_head) as one tensor; None: a row without tokens."""
    known = [row for row in rows if row is not None]
    if not known:
        return None
    longest = max(row.shape[-2] for row in known)
    padded = known[0].new_zeros(len(rows), known[0].shape[1], longest, known[0].shape[-1])
    for number, row in enumerate(rows):
        if row is not None:
            padded[number, :, longest - row.shape[-2] :] = row[0]
    return padded


def _append_last(joined: Cache, caches: Sequence[Cache]) -> None:
    """Append the last token's keys and values to the cache of each row."""
    for number, layers in enumerate(caches):
        for layer, joined_layer in zip(layers, joined, strict=True):
            keys, values = joined_layer.self_attention.keys, joined_layer.self_attention.values
            assert keys is not None
            assert values is not None
            row = slice(number, number + 1)
            layer.self_attention.extend(keys[row, :, -1:], values[row, :, -1:])


def generate(
    model: Transformer | Writer,
    ids: Sequence[int],
    *,
    n_tokens: int,
    sampling: Sampling,
    use_cache: bool = True,
    interventions: Sequence[Intervention] = (),
    **options: Any,
) -> Iterator[GeneratedToken]:
    """Yield up to `n_tokens` tokens that continue `ids`.

    Args:
        model: a decoder in eval mode, or the writer of any model.
        ids: the prompt, start token included; at least one token.
        n_tokens: the maximum number of tokens; the model's `max_tokens` also ends the text.
        sampling: the parameters of sampling.
        use_cache: keep keys and values instead of reading the whole text at every step.
        interventions: of a `Transformer`, act in every pass; a writer has its own.
        options: other arguments of `Continuation`.

    Raises:
        ValueError: as `Continuation`.
        UnknownSite, UnknownLayer, UnknownHead: the model has no such site, layer or head.
        UnknownPosition, ImpossibleIntervention: as `Intervention.for_generation`.
        Cancelled: generation was cancelled between two tokens (`cancellation`).
        NonFiniteLogits: the model's weights are damaged.
    """
    if isinstance(model, Transformer):
        growing = [
            each.for_generation(len(ids), model.config.max_tokens)
            for each in bound(model.sites, interventions)
        ]
        model = TransformerWriter(model, growing)
    text = Continuation(model, ids, n_tokens=n_tokens, sampling=sampling, **options)
    while not text.is_finished:
        check()
        if not use_cache:
            text.cache = text.writer.new_cache()
        (token,) = decode_together([text])
        if isinstance(token, NonFiniteLogits):
            raise token
        yield token


def _require_continuable(writer: Writer, ids: Sequence[int], forced: Sequence[int]) -> None:
    limit = writer.config.max_tokens
    if not 1 <= len(ids) <= limit:
        raise ValueError(f"generation continues 1 to {limit} tokens, not {len(ids)}")
    n_ids = writer.config.vocab_size
    for token in forced:
        if not 0 <= token < n_ids:
            raise ValueError(f"there is no token {token} to force; the ids are 0 to {n_ids - 1}")


def last_query(tensor: Tensor, axes: tuple[str, ...], row: int, n_keys: int) -> Tensor:
    """Return the part of a captured tensor for a row's last query and own keys, on the CPU."""
    if "key" in axes:
        tensor = tensor.narrow(axes.index("key"), tensor.shape[axes.index("key")] - n_keys, n_keys)
    if "query" in axes:  # from the right, so that the axis before keeps its number
        tensor = tensor.select(axes.index("query"), -1)
    if "batch" in axes:
        tensor = tensor.select(axes.index("batch"), row)
    return tensor.cpu()
