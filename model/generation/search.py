"""Choose a continuation among several: beam search, and best of n by a reward model.

Both write whole texts before one is chosen, so a stream begins when the search is over. They work
with the caches of a `Writer` and so on any decoder.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from headlight.model.cancellation import check
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.generation.sampling import (
    Continuation,
    NonFiniteLogits,
    Sampling,
    decode_together,
    penalised,
)
from headlight.model.served import RowCapture, Writer
from headlight.model.tokenizer import Tokenizer

NOTHING = RowCapture((), None, None)


class Candidate(NamedTuple):
    """A continuation, without the text before it, and the score that it was chosen by."""

    ids: list[int]
    score: float


@dataclass(frozen=True)
class _Hypothesis:
    ids: list[int]
    log_probability: float
    cache: Any

    def score(self, length_penalty: float) -> float:
        return self.log_probability / float(max(1, len(self.ids)) ** length_penalty)


def beam_search(
    writer: Writer,
    ids: Sequence[int],
    *,
    n_tokens: int,
    width: int,
    length_penalty: float = 1.0,
    repetition_penalty: float = 1.0,
    stop_ids: Collection[int] = (),
    is_over: Callable[[Sequence[int]], bool] = lambda written: False,
    is_together: bool = True,
) -> list[Candidate]:
    """Search for the likeliest continuations; the best is first.

    Each step extends every hypothesis by its likeliest tokens and keeps the best `width`; one that
    ends is set aside, and the search is over when `width` have ended (Sutskever et al. 2014,
    section 3.2, https://arxiv.org/abs/1409.3215). They are ranked by
    log-probability / length^length_penalty (`translation`).

    Args:
        writer: of the model.
        ids: the text, start token included.
        n_tokens: the most tokens of a continuation.
        width: of the beam; 1 is greedy decoding.
        length_penalty: 0 ranks by the sum of the log-probabilities, 1 by their mean.
        repetition_penalty: as in `Sampling`.
        stop_ids: the tokens that end a text.
        is_over: whether the written tokens end a text, such as by a stop string.
        is_together: whether all hypotheses share a pass, which edits may forbid.

    Raises:
        NonFiniteLogits: the model's weights are damaged.
        Cancelled: the search was cancelled between two tokens.
    """
    n_tokens = min(n_tokens, writer.config.max_tokens - len(ids))
    cache = writer.new_cache()
    if len(ids) > 1:
        writer.extend(cache, ids[:-1])
    beam, ended = [_Hypothesis([], 0.0, cache)], list[_Hypothesis]()
    for _ in range(n_tokens):
        check()
        rows = _log_probabilities(writer, ids, beam, repetition_penalty, is_together=is_together)
        totals = torch.stack(
            [row + each.log_probability for row, each in zip(rows, beam, strict=True)]
        )
        best = totals.flatten().topk(min(2 * width, totals.numel()))
        extended: list[_Hypothesis] = []
        for total, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            parent, token = divmod(place, totals.shape[1])
            written = [*beam[parent].ids, token]
            if token in stop_ids or is_over(written):
                ended.append(_Hypothesis(written, total, None))
            elif len(extended) < width:
                extended.append(_Hypothesis(written, total, beam[parent].cache))
        if len(ended) >= width or not extended:
            break
        # Hypotheses of one parent each extend a copy of its cache.
        used: set[int] = set()
        beam = []
        for each in extended:
            is_shared = id(each.cache) in used
            used.add(id(each.cache))
            held = copy.deepcopy(each.cache) if is_shared else each.cache
            beam.append(_Hypothesis(each.ids, each.log_probability, held))
    else:
        ended += beam
    ranked = sorted(ended, key=lambda each: -each.score(length_penalty))
    return [Candidate(each.ids, each.score(length_penalty)) for each in ranked[:width]]


def _log_probabilities(
    writer: Writer,
    ids: Sequence[int],
    beam: Sequence[_Hypothesis],
    repetition_penalty: float,
    *,
    is_together: bool,
) -> list[torch.Tensor]:
    groups = [beam] if is_together else [[each] for each in beam]
    rows: list[torch.Tensor] = []
    for group in groups:
        texts = [[*ids, *each.ids] for each in group]
        logits, _ = writer.step(
            [each.cache for each in group], [text[-1] for text in texts], [NOTHING] * len(group)
        )
        if not logits.isfinite().all():
            raise NonFiniteLogits("the logits hold NaN or an infinity, so no token can be drawn")
        rows += [
            penalised(row, text, repetition_penalty).log_softmax(dim=-1)
            for row, text in zip(logits, texts, strict=True)
        ]
    return rows


def best_of(
    writer: Writer,
    ids: Sequence[int],
    rate: Callable[[Sequence[int]], float],
    *,
    count: int,
    n_tokens: int,
    sampling: Sampling,
    seed: int,
    stop_ids: Collection[int] = (),
    is_over: Callable[[Sequence[int]], bool] = lambda written: False,
    is_together: bool = True,
) -> list[Candidate]:
    """Sample several continuations and rank them by a rating; the best is first.

    Args:
        writer: of the model.
        ids: the text, start token included.
        rate: rates the tokens of a text and its continuation.
        count: how many are sampled, with the seeds from `seed` on.
        n_tokens: the most tokens of each.
        sampling: the parameters of sampling.
        seed: of the first.
        stop_ids: the tokens that end a text; the last token is not rated if it is one.
        is_over: as in `beam_search`.
        is_together: as in `beam_search`.

    Raises:
        NonFiniteLogits: the model's weights are damaged.
        Cancelled: the search was cancelled between two tokens.
    """
    texts = [
        Continuation(
            writer,
            ids,
            n_tokens=n_tokens,
            sampling=sampling,
            seed=seed + number,
            stop_id=stop_ids,
            is_over=is_over,
        )
        for number in range(count)
    ]
    while growing := [text for text in texts if not text.is_finished]:
        check()
        for group in [growing] if is_together else [[text] for text in growing]:
            for token in decode_together(group):
                if isinstance(token, NonFiniteLogits):
                    raise token
    candidates = []
    for text in texts:
        written = text.text[len(ids) :]
        rated = text.text[:-1] if written and written[-1] in stop_ids else text.text
        candidates.append(Candidate(written, rate(rated)))
    return sorted(candidates, key=lambda candidate: -candidate.score)


def rating_by(rater: Checkpoint, tokenizer: Tokenizer) -> Callable[[Sequence[int]], float]:
    """Return a function that rates tokens with a reward model.

    Raises:
        ValueError: the model gives no reward, or reads other tokens.
    """
    if not rater.config.has_reward:
        raise ValueError(f"'{rater.id}' is no reward model; name one such as stories-reward")
    if rater.tokenizer.to_json() != tokenizer.to_json():
        raise ValueError(f"the reward model '{rater.id}' has another tokenizer than the decoder")

    def rate(ids: Sequence[int]) -> float:
        with torch.inference_mode():
            text = torch.tensor([list(ids)[-rater.config.max_tokens :]], device=rater.device)
            reward = rater.model(text, has_logits=False).reward
        assert reward is not None
        return float(reward[0, -1])

    return rate
