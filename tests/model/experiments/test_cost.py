"""The same numbers in every way, and exact counts; times are only positive."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.experiments import cost as module
from headlight.model.experiments.cost import EXPERIMENT, eager, fused, loop_scores
from headlight.model.transformer import Transformer

SMALL = {"n_tokens": 4, "d_model": 8, "megabytes": 1}


def test_the_loop_is_the_product():
    queries, keys = np.random.default_rng(0).normal(size=(2, 5, 7))
    scores = loop_scores(queries.tolist(), keys.tolist())
    np.testing.assert_allclose(scores, queries @ keys.T, atol=1e-12)


@pytest.mark.parametrize("n_numbers", [1, module.BLOCK - 1, module.BLOCK, 2 * module.BLOCK + 3])
def test_fused_blocks_are_the_eager_result(n_numbers):
    x = torch.randn(n_numbers, generator=torch.Generator().manual_seed(2))
    expected = torch.relu(1.5 * x - 0.25) * 0.75 + x
    torch.testing.assert_close(eager(x), expected)
    assert torch.equal(fused(x), eager(x))


def test_counts_of_multiplications_and_bytes():
    result = EXPERIMENT.result(SMALL)
    assert result["multiplications"].data == 4 * 4 * 8
    assert result["traffic"].data.tolist() == [11 * 2**20, 2 * 2**20]
    assert result["difference"].data.tolist() == [0, 0]
    for name in ("way_seconds", "kernel_seconds"):
        assert (result[name].data > 0).all()


def test_experts_count_as_the_parameters_of_a_transformer():
    result = EXPERIMENT.result({**SMALL, "n_experts": 4, "top_k": 2, "n_layers": 3})
    config = TransformerConfig(
        n_layers=3,
        n_heads=2,
        d_model=8,
        d_ff=32,
        vocab_size=5,
        max_tokens=4,
        feed_forward_bias=False,
        moe=ExpertsConfig(n_experts=4, top_k=2, layers=(0, 1, 2)),
    )
    matrices = [
        parameter.numel()
        for name, parameter in Transformer(config).named_parameters()
        if parameter.ndim == 2 and "embedding" not in name
    ]
    everything = result["all_parameters"].data
    assert everything[3] == sum(matrices)
    active = result["active_parameters"].data
    assert everything[3] - active[3] == 3 * 2 * 8 * 64  # two experts of each layer rest
    assert active[1] == everything[1]


def test_more_choices_than_experts_are_named():
    with pytest.raises(ValidationError, match=r"top_k \(4\) is more than n_experts \(2\)"):
        EXPERIMENT.validate({"top_k": 4, "n_experts": 2})
