"""How evenly the routers spread a text over the experts."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.config import ExpertsConfig
from headlight.model.evaluation.expert_load import expert_load, load_entropy

ROUTER = "decoder.layers.1.experts.router_logits"


@pytest.fixture
def rows() -> Tensor:
    return torch.randint(2, 300, (5, 20), generator=torch.Generator().manual_seed(0))


def test_the_load_counts_the_tokens_that_each_expert_takes(
    checkpoint: Checkpoint, rows: Tensor
) -> None:
    start = torch.full((5, 1), checkpoint.tokenizer.start_id)
    with torch.inference_mode(), checkpoint.model.capture(["*.expert_indices"]) as captured:
        checkpoint.model(torch.cat([start, rows], dim=1))
    (indices,) = captured.values()
    counts = [int((indices == expert).sum()) for expert in range(4)]
    expected = [count / sum(counts) for count in counts]
    for batch_rows in (2, 16):
        load = expert_load(checkpoint, rows, batch_rows=batch_rows)
        assert list(load) == [1]
        assert load[1].tolist() == pytest.approx(expected)
        assert float(load[1].sum()) == pytest.approx(1)


def test_experts_that_nobody_is_sent_to_have_no_load(checkpoint: Checkpoint, rows: Tensor) -> None:
    favourites = torch.tensor([0.0, 100.0, 0.0, 100.0])
    with checkpoint.model.edit(ROUTER, lambda logits: logits + favourites):
        load = expert_load(checkpoint, rows)
    assert load[1].tolist() == [0, 0.5, 0, 0.5]
    assert load_entropy(load[1]) == pytest.approx(0.5)


def test_each_layer_has_its_own_load(
    make_checkpoint: Callable[..., Checkpoint], rows: Tensor
) -> None:
    moe = ExpertsConfig(n_experts=4, top_k=1, layers=(2, 0))
    checkpoint = make_checkpoint(n_layers=3, moe=moe)
    site = "decoder.layers.2.experts.router_logits"
    with checkpoint.model.edit(site, lambda logits: logits + 100 * torch.eye(4)[3]):
        load = expert_load(checkpoint, rows)
    assert list(load) == [0, 2]
    assert load[2].tolist() == [0, 0, 0, 1]
    assert load[0].max() < 1


def test_entropy_is_1_when_all_take_as_many_and_0_when_one_takes_all() -> None:
    assert load_entropy(torch.full((8,), 1 / 8)) == pytest.approx(1)
    assert load_entropy(torch.tensor([0.0, 1.0, 0.0])) == 0
    by_hand = -(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25)) / math.log(3)
    assert load_entropy(torch.tensor([0.5, 0.25, 0.25])) == pytest.approx(by_hand)


def test_a_dense_model_has_no_load(
    make_checkpoint: Callable[..., Checkpoint], rows: Tensor
) -> None:
    with pytest.raises(ValueError, match=r"^tiny is dense: it has no experts$"):
        expert_load(make_checkpoint(moe=None), rows)
