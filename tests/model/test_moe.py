"""Experts agree with a loop over tokens; routing and balance loss keep their promises."""

import pytest
import torch
from torch import nn

from headlight.model.config import ExpertsConfig
from headlight.model.moe import (
    BLOCK_POSITIONS,
    BLOCK_ROWS,
    Experts,
    blockwise_balance_loss,
    load_balance_loss,
)


@pytest.fixture
def make_experts(make_config, randomise):
    def make(n_experts=4, top_k=2):
        torch.manual_seed(0)
        moe = ExpertsConfig(n_experts=n_experts, top_k=top_k, layers=(1,))
        experts = Experts(make_config(moe=moe))
        randomise(experts)
        return experts

    return make


@pytest.fixture
def x():
    return torch.randn(3, 7, 32, generator=torch.Generator().manual_seed(1))


def token_by_token(experts, x):
    """Return the definition, written as slowly as it reads."""
    output = torch.zeros_like(x)
    for row in range(x.shape[0]):
        for place in range(x.shape[1]):
            token = x[row, place]
            probs = torch.softmax(experts.router.weight @ token, dim=0)
            chosen = sorted(range(len(probs)), key=lambda e: -probs[e])[: experts.top_k]
            total = sum(probs[expert] for expert in chosen)
            for expert in chosen:
                output[row, place] += probs[expert] / total * experts.experts[expert](token)
    return output


@pytest.mark.parametrize(("n_experts", "top_k"), [(4, 2), (8, 2), (5, 1), (3, 3), (16, 4)])
def test_experts_in_groups_are_experts_token_by_token(make_experts, x, n_experts, top_k):
    experts = make_experts(n_experts, top_k)
    torch.testing.assert_close(experts(x).output, token_by_token(experts, x), rtol=0, atol=1e-6)


def test_experts_of_a_graph_are_those_of_a_pass(make_experts, x, monkeypatch):
    experts = make_experts()
    expected = experts(x).output
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert torch.allclose(experts(x).output, expected, atol=1e-5)


def test_every_expert_runs_once_on_all_its_tokens(make_experts, x):
    experts = make_experts(n_experts=16)
    n_tokens: list[int] = []
    for expert in experts.experts:
        expert.register_forward_pre_hook(lambda _, inputs: n_tokens.append(len(inputs[0])))
    experts(x)
    assert len(n_tokens) == 16
    assert sum(n_tokens) == 3 * 7 * 2


def test_padded_blocks_of_a_training_step_change_nothing_but_digits(make_experts, x):
    experts = make_experts()
    exact = experts(x).output
    with torch.autocast("cpu", torch.bfloat16):
        rounded = experts(x).output
    torch.testing.assert_close(rounded.float(), exact, rtol=0.05, atol=0.05)
    gradients = [
        torch.autograd.grad(output.float().square().sum(), experts.experts[0].parameters())
        for output in (exact, rounded)
    ]
    for found, expected in zip(*reversed(gradients), strict=True):
        assert (found - expected).norm() < 0.05 * expected.norm()


def test_experts_may_be_relabelled(make_experts, x):
    experts = make_experts(n_experts=6)
    before = experts(x)
    order = [3, 0, 5, 1, 4, 2]
    experts.experts = nn.ModuleList(experts.experts[expert] for expert in order)
    with torch.no_grad():
        experts.router.weight.copy_(experts.router.weight[order].clone())
    after = experts(x)
    torch.testing.assert_close(after.output, before.output, rtol=0, atol=1e-6)
    torch.testing.assert_close(after.balance_loss, before.balance_loss)


def test_the_most_probable_experts_are_chosen_and_their_weights_sum_to_1(make_experts, x, watch):
    experts = make_experts(n_experts=6, top_k=3)
    with watch(experts).capture(["part.*"]) as captured:
        output = experts(x).output
    seen = {site.removeprefix("part."): tensor for site, tensor in captured.items()}
    torch.testing.assert_close(seen["router_logits"], x @ experts.router.weight.T)
    torch.testing.assert_close(seen["router_probs"], seen["router_logits"].softmax(dim=-1))
    torch.testing.assert_close(seen["router_probs"].sum(dim=-1), torch.ones(3, 7))
    by_probability = seen["router_probs"].argsort(dim=-1, descending=True)
    assert seen["expert_indices"].equal(by_probability[..., :3])
    chosen = seen["router_probs"].gather(-1, seen["expert_indices"])
    torch.testing.assert_close(seen["expert_weights"], chosen / chosen.sum(dim=-1, keepdim=True))
    torch.testing.assert_close(seen["expert_weights"].sum(dim=-1), torch.ones(3, 7))
    assert seen["output"] is output


# --- the balance loss -----------------------------------------------------------------------------


def test_the_balance_loss_by_hand():
    probs = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.1, 0.4]])
    indices = torch.tensor([[0, 1], [0, 2]])
    # f = 2/4 1/4 1/4, P = .6 .15 .25
    expected = 3 * (0.5 * 0.6 + 0.25 * 0.15 + 0.25 * 0.25)
    assert load_balance_loss(probs, indices).item() == pytest.approx(expected)


def routed(n_rows, n_positions):
    """Random probabilities over five experts, and the two most probable."""
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(n_rows, n_positions, 5, generator=generator).softmax(dim=-1)
    return probs, probs.topk(2, dim=-1).indices


def test_the_balance_of_many_blocks_is_their_mean_by_tokens():
    n_rows, n_positions = 2 * BLOCK_ROWS + 1, 2 * BLOCK_POSITIONS + 3
    probs, indices = routed(n_rows, n_positions)
    total = 0.0
    for row in range(0, n_rows, BLOCK_ROWS):
        for place in range(0, n_positions, BLOCK_POSITIONS):
            block = (slice(row, row + BLOCK_ROWS), slice(place, place + BLOCK_POSITIONS))
            tokens, chosen = probs[block].flatten(0, 1), indices[block].flatten(0, 1)
            total += len(tokens) * load_balance_loss(tokens, chosen).item()
    expected = total / (n_rows * n_positions)
    assert blockwise_balance_loss(probs, indices).item() == pytest.approx(expected)


def test_experts_of_a_position_or_of_a_row_are_not_balanced():
    half = torch.arange(2).repeat_interleave(BLOCK_POSITIONS)
    by_position = half.expand(2, -1)[..., None]
    by_row = torch.arange(2).repeat_interleave(BLOCK_ROWS)[:, None, None].expand(-1, 4, -1)
    for indices in (by_position, by_row):
        probs = torch.eye(2)[indices[..., 0]]
        assert load_balance_loss(probs.flatten(0, 1), indices.flatten(0, 1)).item() == 1
        assert blockwise_balance_loss(probs, indices).item() == 2


def test_padding_counts_nowhere_in_the_balance():
    n_rows, n_positions = BLOCK_ROWS + 1, BLOCK_POSITIONS + 3
    probs, indices = routed(n_rows, n_positions)
    is_token = torch.arange(n_positions) < torch.tensor([35, 1, 32, 33, 9, 2, 0])[:, None]
    total = 0.0
    for row in range(0, n_rows, BLOCK_ROWS):
        for place in range(0, n_positions, BLOCK_POSITIONS):
            block = (slice(row, row + BLOCK_ROWS), slice(place, place + BLOCK_POSITIONS))
            kept = is_token[block]
            if kept.any():
                loss = load_balance_loss(probs[block][kept], indices[block][kept])
                total += int(kept.sum()) * loss.item()
    loss = blockwise_balance_loss(probs, indices, is_token)
    assert loss.item() == pytest.approx(total / int(is_token.sum()))
    assert loss.item() != pytest.approx(blockwise_balance_loss(probs, indices).item())
