from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from headlight.model.foreign.attention_facts import Span, facts_of
from headlight.model.foreign.operations import Order
from headlight.model.foreign.probe import AttentionCall, Call
from headlight.model.trace import AttentionFacts

N_ROWS, N_HEADS, N_TOKENS, D_HEAD = 2, 2, 5, 4


def facts(queries: Tensor, scores: Tensor, keys: Tensor) -> AttentionFacts:
    """Return the facts of an attention without an interface, whose scale is fitted."""
    weights = scores.softmax(dim=-1)
    attention = AttentionCall(
        call=Call("attention", nn.Module(), 0, 0),
        time=0,
        order=Order(1, 1, 2),
        queries=queries,
        keys=keys,
        values=keys,
        scores=scores,
        weights=weights,
        context=weights @ keys,
    )
    return facts_of("encoder.layers.0", "self_attention", attention, N_HEADS, Span())


def draw(width: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(N_ROWS, N_HEADS, N_TOKENS, width, generator=generator)


def test_the_scale_is_fitted_from_two_texts():
    queries, keys = draw(D_HEAD, 0), draw(D_HEAD, 1)
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(D_HEAD)

    measured = facts(queries, scores, keys)

    assert measured.scale == pytest.approx(0.5)
    assert (measured.is_exact, measured.has_bias) == (True, False)


def test_scores_that_no_scale_fits_are_not_exact():
    queries, keys = torch.zeros(N_ROWS, N_HEADS, N_TOKENS, D_HEAD), draw(D_HEAD, 1)

    measured = facts(queries, draw(N_TOKENS, 2), keys)

    assert measured.scale is None
    assert (measured.is_exact, measured.has_bias) == (False, False)
