"""Attention in blocks against the whole matrix in float64, at 2,048 tokens."""

import pytest
import torch

from headlight.model.attention.blockwise import blockwise_attention
from headlight.model.attention.observer import OBSERVED_AXES, Watch, watching
from tests.whole_attention import BOUNDS, KINDS, case, context, observed

N = 2048
QUERIES = (0, 1, 700, 1500, N - 1)
ROUNDED = dict.fromkeys(("context", "max_map", "logsumexp"), 1e-6)
"""Values, single weights and scores have the digits of float32, whatever their size."""


@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_tokens_differ_from_the_whole_matrix_by_rounding(kind):
    sample = case(kind, N, n_heads=2, d_head=64, n_rows=2 if kind == "padding" else 1, spread=1)
    with torch.inference_mode(), watching(Watch(resolution=256, queries=QUERIES)):
        out, statistics = blockwise_attention(
            sample.queries, sample.keys, sample.values, sample.terms, tuple(OBSERVED_AXES)
        )
    expected = {"context": context(sample), **observed(sample, QUERIES, 256)}
    for name, bound in {"context": 1e-6, **BOUNDS}.items():
        allowed = bound + ROUNDED.get(name, 0) * expected[name].abs()
        far = (({"context": out} | statistics)[name].double() - expected[name]).abs()
        assert bool((far <= allowed).all()), (name, (far - allowed).max().item())
