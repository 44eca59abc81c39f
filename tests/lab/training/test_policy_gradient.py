"""The policy gradient, compared with the gradient of an expectation summed over every outcome."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from headlight.lab.training.policy_gradient import (
    _draw,
    group_advantages,
    log_probs_of,
    policy_loss,
    sample_tree,
    shared_log_probs,
)
from headlight.model.config import TransformerConfig
from headlight.model.generation.continuations import sample_continuations
from headlight.model.transformer import Transformer

TOY = TransformerConfig(
    n_layers=1, n_heads=2, d_model=8, d_ff=8, vocab_size=4, max_tokens=8, positional="learned"
)
N_TOKENS, STOP = 2, 3
# Two tokens of three each, the stop token aside: the rewards of the nine outcomes.
REWARDS = torch.tensor([0.0, 1.0, 0.3, 2.0, -1.0, 0.0, 0.5, 0.0, 1.5])
OUTCOMES = torch.tensor([[0, *pair] for pair in product(range(3), repeat=N_TOKENS)])


@pytest.fixture
def model():
    torch.manual_seed(0)
    toy = Transformer(TOY)
    with torch.no_grad():
        toy.vectors.normal_(0, 0.7)
        toy.vectors[STOP] = 0  # each outcome of the toy has two tokens
    return toy.eval()


def outcome_log_probs(model):
    """Return the log-probabilities of each outcome's tokens, of the three that may be drawn."""
    logits = model(OUTCOMES[:, :-1]).logits[..., :STOP].log_softmax(-1)
    return logits.gather(2, OUTCOMES[:, 1:, None])[..., 0]


def gradient(model, loss):
    model.zero_grad()
    loss.backward(retain_graph=True)
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("baseline", [0.0, 0.7])
@pytest.mark.parametrize("clip", [None, 0.2])
def test_its_expectation_is_the_gradient_of_the_expected_reward(model, baseline, clip):
    log_probs = outcome_log_probs(model)
    chances = log_probs.detach().sum(1).exp()
    ones = torch.ones(1, N_TOKENS, dtype=torch.bool)
    loss = sum(
        chance * policy_loss(row[None], row[None].detach(), advantage.view(1, 1), ones, clip=clip)
        for chance, row, advantage in zip(chances, log_probs, REWARDS - baseline, strict=True)
    )
    expected = gradient(model, (outcome_log_probs(model).sum(1).exp() * REWARDS).sum())
    assert expected.norm() > 0.05
    torch.testing.assert_close(-N_TOKENS * gradient(model, loss), expected, rtol=1e-4, atol=1e-6)


def test_divided_by_the_mean_it_is_the_gradient_of_the_logarithm(model):
    """Each outcome as often as its chance: for rewards of 0 and 1, the gradient of log E[r]."""
    log_probs = outcome_log_probs(model)
    chances = log_probs.detach().sum(1).exp()
    rewards = (REWARDS > 0.4).float()
    share = (chances * rewards).sum()
    advantages = (rewards - share) / share
    loss = policy_loss(
        log_probs, log_probs.detach(), advantages[:, None], chances[:, None].expand(log_probs.shape)
    )
    expected = gradient(model, (log_probs.sum(1).exp() * rewards).sum().log())
    torch.testing.assert_close(-N_TOKENS * gradient(model, loss), expected, rtol=1e-4, atol=1e-6)


def test_a_row_sampled_twice_has_the_loss_of_two_rows(model):
    sampled = sample_continuations(
        model, torch.zeros(3, 1, dtype=torch.long), n_tokens=4, stop_id=9
    )
    counts = torch.tensor([1, 2, 3])
    short = replace(sampled, counts=counts)
    long = sampled.rows(torch.arange(3).repeat_interleave(counts))
    other, values = torch.randn(3, 4), torch.tensor([[1.0], [-2.0], [0.5]])
    wide = other.repeat_interleave(counts, dim=0)

    def loss_of(rows, probs, advantages):
        return policy_loss(probs, rows.log_probs, advantages, rows.weights, clip=0.2)

    torch.testing.assert_close(
        loss_of(short, other, values), loss_of(long, wide, values.repeat_interleave(counts, dim=0))
    )


def test_a_clipped_token_has_no_gradient():
    before = torch.zeros(1, 3)
    log_probs = torch.tensor([[0.5, 0.0, -0.5]], requires_grad=True)
    counted = torch.ones(1, 3, dtype=torch.bool)
    for advantage, moves in ((1.0, [False, True, True]), (-1.0, [True, True, False])):
        log_probs.grad = None
        policy_loss(log_probs, before, torch.tensor([[advantage]]), counted, clip=0.2).backward()
        assert log_probs.grad is not None
        assert (log_probs.grad[0] != 0).tolist() == moves


def test_advantages_of_a_group_sum_to_zero_and_equal_rewards_have_none():
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    normalised = group_advantages(rewards)
    torch.testing.assert_close(normalised[0], torch.tensor([1.0, -1, -1, 1]))
    assert normalised[1].tolist() == [0, 0, 0, 0]


def test_continuations_are_drawn_from_the_models_distribution(model):
    generator = torch.Generator().manual_seed(0)
    prompts = torch.zeros(4000, 1, dtype=torch.long)
    sampled = sample_continuations(
        model, prompts, n_tokens=1, stop_id=STOP, generator=generator, temperature=0.7
    )
    drawn = sampled.ids[:, 1].bincount(minlength=4) / len(prompts)
    expected = (model(prompts[:1]).logits[0, 0] / 0.7).softmax(-1)
    assert (drawn - expected).abs().max() < 0.03
    assert (expected - 0.25).abs().max() > 0.05


def test_the_cache_gives_the_log_probabilities_of_a_whole_pass(model):
    generator = torch.Generator().manual_seed(1)
    prompts = torch.randint(3, (6, 3), generator=generator)
    sampled = sample_continuations(
        model, prompts, n_tokens=5, stop_id=STOP, generator=generator, temperature=1.3
    )
    log_probs = log_probs_of(model(sampled.ids[:, :-1]).logits, sampled, temperature=1.3)
    is_sampled = sampled.is_sampled
    torch.testing.assert_close(log_probs[is_sampled], sampled.log_probs[is_sampled])
    assert sampled.n_prompt == 3


def test_a_tree_has_the_samples_of_the_models_distribution(model):
    """Every outcome of two prompts is counted as often as its probability says."""
    prompts = torch.tensor([[0, 1], [0, 2]])
    sampled = sample_tree(
        model,
        prompts,
        n_samples=4000,
        n_tokens=2,
        stop_id=STOP,
        temperature=5.0,
        generator=torch.Generator().manual_seed(0),
    )
    assert len(sampled.ids.unique(dim=0)) == len(sampled.ids) == 2 * (1 + 3 * 4)
    for prompt in prompts:
        is_its = (sampled.ids[:, :2] == prompt).all(1)
        rows = sampled.rows(is_its)
        assert rows.row_counts.sum() == 4000
        first = (model(prompt[None]).logits[0, -1] / 5).softmax(-1)
        assert (rows.row_counts / 4000 - rows.log_probs.sum(1).exp()).abs().max() < 0.03
        ended = rows.row_counts[rows.ids[:, 2] == STOP].sum() / 4000
        assert abs(ended - first[STOP]) < 0.03
    is_sampled = sampled.is_sampled
    log_probs = log_probs_of(model(sampled.ids[:, :-1]).logits, sampled, temperature=5.0)
    torch.testing.assert_close(log_probs[is_sampled], sampled.log_probs[is_sampled])
    assert (sampled.log_probs[~is_sampled] == 0).all()
    lengths = is_sampled.sum(1)
    assert (lengths == 1).tolist() == (sampled.ids[:, 2] == STOP).tolist()
    assert sampled.has_ended.tolist() == (sampled.ids[:, 2:] == STOP).any(1).tolist()


def test_a_tree_draws_no_token_without_probability():
    """Over a distribution with zeros at its ends and inside, whatever the chances are."""
    policy = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 0.25, 0.75, 0.0]]).log()
    parents = torch.arange(2).repeat_interleave(8000)
    drawn = _draw(policy, parents, torch.Generator().manual_seed(0))
    shares = torch.stack([drawn[parents == row].bincount(minlength=5) for row in (0, 1)]) / 8000
    assert (shares - policy.exp()).abs().max() < 0.02
    assert (shares[policy.isinf()] == 0).all()


@pytest.mark.parametrize("n_samples", [1, 40])
def test_shared_beginnings_change_no_log_probability_and_no_gradient(model, n_samples):
    generator = torch.Generator().manual_seed(2)
    prompts = torch.tensor([[0, 1], [0, 2], [0, 0]])
    sampled = sample_tree(
        model, prompts, n_samples=n_samples, n_tokens=5, stop_id=STOP, generator=generator
    )
    shared = shared_log_probs(model, sampled, temperature=1.3)
    whole = log_probs_of(model(sampled.ids[:, :-1]).logits, sampled, temperature=1.3)
    torch.testing.assert_close(shared, whole)
    weights = sampled.weights * torch.linspace(-1, 1, len(shared))[:, None]
    torch.testing.assert_close(
        gradient(model, (shared * weights).sum()), gradient(model, (whole * weights).sum())
    )


def test_a_row_ends_at_its_stop_token(model):
    sampled = sample_continuations(
        model,
        torch.zeros(64, 1, dtype=torch.long),
        n_tokens=6,
        stop_id=STOP,
        generator=torch.Generator().manual_seed(0),
    )
    assert 0 < int(sampled.has_ended.sum()) < 64
    for row, ids in enumerate(sampled.written()):
        assert STOP not in ids
        counted = len(ids) + int(sampled.has_ended[row])
        assert sampled.is_sampled[row].tolist() == [n < counted for n in range(6)]


def test_at_temperature_0_the_likeliest_token_is_taken(model):
    with torch.no_grad():
        greedy = sample_continuations(
            model, torch.zeros(1, 1, dtype=torch.long), n_tokens=4, stop_id=STOP, temperature=0
        )
        for n in range(1, greedy.ids.shape[1]):
            assert greedy.ids[0, n] == model(greedy.ids[:, :n]).logits[0, -1].argmax()
    with pytest.raises(ValueError, match="temperature \\(-1\\) must be at least 0"):
        sample_continuations(model, greedy.ids, n_tokens=1, stop_id=STOP, temperature=-1)
