"""A softmax is described once, without PyTorch, and its scores follow from the description."""

import subprocess
import sys
from dataclasses import fields

import pytest
import torch

from headlight.model.attention.scores import ScoreTerms, scaled_product
from headlight.model.attention.terms import AttentionFacts, Terms


def test_the_terms_are_described_once():
    shared = {each.name for each in fields(Terms)}
    for kind in (AttentionFacts, ScoreTerms):
        assert issubclass(kind, Terms)
        assert shared <= {each.name for each in fields(kind)}


def test_a_client_reads_them_without_pytorch():
    code = "import sys, headlight.model.attention.terms; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize("n_groups", [4, 2, 1])
def test_the_product_is_scaled_and_capped(n_groups, scale, softcap):
    queries, keys = torch.randn(2, 3, 4, 5, 16, generator=torch.Generator().manual_seed(0))
    keys = keys[:, :n_groups]
    product = scaled_product(queries, keys, Terms(scale=scale, softcap=softcap))
    for head in range(4):
        expected = queries[:, head] @ keys[:, head * n_groups // 4].mT * (scale or 1 / 4)
        if softcap:
            expected = softcap * torch.tanh(expected / softcap)
        torch.testing.assert_close(product[:, head], expected, rtol=0, atol=1e-5)
