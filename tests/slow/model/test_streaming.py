"""Attention in blocks against the whole matrix in float64, at 2,048 tokens."""

import pytest
import torch

from headlight.model.streaming import OBSERVED_AXES, Watch, stream_attention, watching
from tests.whole_attention import BOUNDS, KINDS, case, context, observed

N = 2048
QUERIES = (0, 1, 700, 1500, N - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_tokens_differ_from_the_whole_matrix_by_rounding(kind):
    one = case(kind, N, n_heads=2, d_head=64, n_rows=2 if kind == "padding" else 1)
    with torch.inference_mode(), watching(Watch(resolution=256, queries=QUERIES)):
        out, found = stream_attention(
            one.queries, one.keys, one.values, one.terms, tuple(OBSERVED_AXES)
        )
    difference = (out.double() - context(one)).abs().max().item()
    assert difference <= 1e-6 * max(1, context(one).abs().max().item())
    expected = observed(one, QUERIES, 256)
    for name, bound in BOUNDS.items():
        # float32 keeps seven digits: a weight near 1 is rounded by more than one near 0.
        slack = 1 + 10 * expected[name].abs().clamp(max=1) if name != "logsumexp" else 1
        far = ((found[name].double() - expected[name]).abs() / slack).max().item()
        assert far <= bound, name
