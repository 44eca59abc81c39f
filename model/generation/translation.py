"""Translation by beam search.

Each step extends every hypothesis of the beam by its most likely next tokens and keeps the best of
all extensions; those that end with the end token are finished. Sutskever et al. 2014,
https://arxiv.org/abs/1409.3215, section 3.2. Finished hypotheses are ranked by
log-probability / length^penalty (Wu et al. 2016, https://arxiv.org/abs/1609.08144, section 7,
without its constants).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.layers import Memory
from headlight.model.transformer import Transformer


class Beam(NamedTuple):
    """The parameters of beam search.

    ``width`` is the number of hypotheses kept at each step, and of finished ones that end the
    search; 1 is greedy decoding. ``length_penalty`` 0 ranks by the sum of log-probabilities, 1 by
    their mean.
    """

    width: int = 4
    length_penalty: float = 1.0


def longest_target(n_source: int, max_tokens: int) -> int:
    """Return the most tokens of a translation, the end included: twice the source and ten."""
    return min(2 * n_source + 10, max_tokens - 1)


def translate(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    *,
    start_id: int,
    end_id: int,
    beam: Beam | None = None,
) -> list[list[int]]:
    """Translate texts in one batch; the results are those of translating each by itself.

    Args:
        model: an encoder–decoder in eval mode.
        sources: token ids, start token first; at least one.
        start_id: the start token of a target.
        end_id: the end token of a target.
        beam: the parameters of the search; None: the defaults.

    Returns:
        The ids of each target without special tokens.

    Raises:
        ValueError: the model is not an encoder–decoder.
        Cancelled: the search was cancelled between two tokens (`cancellation`).
    """
    if model.config.kind != "encoder-decoder":
        raise ValueError(f"a model of kind {model.config.kind!r} cannot translate")
    with torch.inference_mode():
        return _Search(model, sources, start_id, end_id, beam or Beam()).run()


def in_target(logits: Float[Tensor, "row vocab"], start_id: int) -> Float[Tensor, "row vocab"]:
    """Return log-probabilities of the next tokens; the start token is never part of a target."""
    logits = logits.float().clone()
    logits[:, start_id] = -torch.inf
    return logits.log_softmax(dim=-1)


class _Search:
    """One beam search over a batch; a row is a pair of a text and a place in its beam."""

    def __init__(
        self,
        model: Transformer,
        sources: Sequence[Sequence[int]],
        start_id: int,
        end_id: int,
        beam: Beam,
    ) -> None:
        self.model, self.beam = model, beam
        self.start_id, self.end_id = start_id, end_id
        device = model.vectors.device
        lengths = torch.tensor([len(source) for source in sources], device=device)
        ids = torch.full((len(sources), int(lengths.max())), end_id, device=device)
        for row, source in enumerate(sources):
            ids[row, : len(source)] = torch.tensor(source, device=device)
        is_token = torch.arange(ids.shape[1], device=device) < lengths[:, None]
        memory, _ = model.encode(ids, is_token=is_token)
        self.memory = Memory(
            memory.x.repeat_interleave(beam.width, 0), is_token.repeat_interleave(beam.width, 0)
        )
        self.cache = model.new_cache()
        self.limits = [longest_target(len(source), model.config.max_tokens) for source in sources]
        shape = (len(sources), beam.width)
        self.ids = torch.full((*shape, 1), start_id, device=device)
        # All hypotheses of a beam start equal, so only the first counts in the first step.
        self.scores = torch.full(shape, -torch.inf, device=device)
        self.scores[:, 0] = 0.0
        self.best: list[tuple[float, list[int]]] = [(-torch.inf, [])] * len(sources)
        self.n_finished = [0] * len(sources)

    def run(self) -> list[list[int]]:
        for length in range(1, max(self.limits) + 1):
            check()
            self._extend(self._log_probabilities(), length)
            if self._is_over(length):
                break
        return [ids for _, ids in self.best]

    def _log_probabilities(self) -> Float[Tensor, "text place vocab"]:
        logits = self.model.decode(
            self.ids[..., -1:].flatten(0, 1), self.memory, cache=self.cache
        ).logits
        scores = in_target(logits[:, -1], self.start_id)
        return scores.reshape(*self.scores.shape, -1)

    def _extend(self, log_probabilities: Float[Tensor, "text place vocab"], length: int) -> None:
        """Keep the best unfinished hypotheses, and record the finished ones."""
        width, vocab = self.scores.shape[1], log_probabilities.shape[-1]
        totals = (self.scores[..., None] + log_probabilities).flatten(1)
        scores, choices = totals.topk(2 * width, dim=-1)  # up to half of them may be finished
        places, tokens = choices // vocab, choices % vocab
        is_end = tokens == self.end_id
        self._record(scores, places, tokens, length)
        order = is_end.int().sort(dim=-1, stable=True).indices[:, :width]
        self.scores = scores.gather(1, order)
        places, tokens = places.gather(1, order), tokens.gather(1, order)
        rows = torch.arange(len(places), device=places.device)[:, None]
        self.ids = torch.cat([self.ids[rows, places], tokens[..., None]], dim=-1)
        for layer in self.cache:
            layer.self_attention.select((rows * width + places).flatten())

    def _record(
        self,
        scores: Float[Tensor, "text choice"],
        places: Int[Tensor, "text choice"],
        tokens: Int[Tensor, "text choice"],
        length: int,
    ) -> None:
        """Record the best hypotheses that end here; at its limit one ends without an end token."""
        for text, limit in enumerate(self.limits):
            if self._is_done(text) or length > limit:
                continue
            for choice in range(self.beam.width):
                token, score = int(tokens[text, choice]), float(scores[text, choice])
                if score > -torch.inf and (token == self.end_id or length == limit):
                    ids = self.ids[text, int(places[text, choice]), 1:].tolist()
                    ids += [] if token == self.end_id else [token]
                    self._finish(text, ids, score / length**self.beam.length_penalty)

    def _finish(self, text: int, ids: list[int], score: float) -> None:
        self.n_finished[text] += 1
        if score > self.best[text][0]:
            self.best[text] = (score, ids)

    def _is_done(self, text: int) -> bool:
        """Return True if the text has as many finished hypotheses as the beam is wide."""
        return self.n_finished[text] >= self.beam.width

    def _is_over(self, length: int) -> bool:
        """Return True if every text is done, at its limit, or has a best hypothesis that stays."""
        reachable = self.scores[:, 0].tolist()
        return all(
            self._is_done(text)
            or length >= limit
            or reachable[text] / limit**self.beam.length_penalty <= self.best[text][0]
            for text, limit in enumerate(self.limits)
        )
