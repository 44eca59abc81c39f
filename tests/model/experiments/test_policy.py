"""One step of policy gradient, against the lab's loss and a gradient of differences."""

import copy

import numpy as np
import pytest
import torch

from headlight.lab.training.policy_gradient import group_advantages, log_probs_of, policy_loss
from headlight.model.arithmetic import Problem, mark, split
from headlight.model.checkpoint.card import read_card
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.experiments import policy
from headlight.model.experiments.chains import solve
from headlight.model.experiments.policy import EXPERIMENT


def chains_of(name="sums-imitation", seed=0):
    checkpoint = load(name)
    sampled, marked = solve(
        checkpoint.model,
        checkpoint.tokenizer,
        [Problem(38, 94)] * 8,
        n_tokens=policy.N_TOKENS,
        temperature=1.0,
        generator=torch.Generator().manual_seed(seed),
    )
    return checkpoint, sampled, marked


@pytest.mark.parametrize("baseline", ["mean", "group"])
def test_the_step_is_that_of_the_lab_s_loss(baseline):
    result = EXPERIMENT.result({"baseline": baseline, "rate": 0.002})
    checkpoint, sampled, marked = chains_of()
    model = copy.deepcopy(checkpoint.model)
    rewards = torch.tensor([[float(marking.is_right) for marking in marked]])
    centred = rewards - rewards.mean()
    advantages = (group_advantages(rewards) if baseline == "group" else centred).T
    assert result["advantage"].data == pytest.approx(advantages[:, 0].numpy(), abs=1e-4)
    read = log_probs_of(model.decode(sampled.ids[:, :-1]).logits, sampled)
    loss = policy_loss(read, read.detach(), advantages, sampled.weights)
    (loss * sampled.weights.sum() / 8).backward()  # the mean over chains, not over tokens
    with torch.no_grad():
        for weight in model.parameters():
            if weight.grad is not None:
                weight -= 0.002 * weight.grad
        after = log_probs_of(model.decode(sampled.ids[:, :-1]).logits, sampled).exp()
    written = sampled.is_sampled.numpy()
    assert result["before"].data == pytest.approx(read.detach().exp().numpy() * written, abs=1e-4)
    assert result["after"].data == pytest.approx(after.numpy() * written, abs=1e-3)
    assert abs(result["after"].data - result["before"].data).max() > 0.05
    whole = {tuple(ids.tolist()): row for ids, row in zip(sampled.ids, read.sum(1), strict=True)}
    right = {tuple(sampled.ids[at].tolist()) for at in range(8) if marked[at].is_right}
    chance = sum(whole[ids].exp().item() for ids in right)
    assert result["chance"].data[0] == pytest.approx(chance, abs=1e-3)
    assert result["chance"].data[1] > chance
    assert EXPERIMENT.result({})["chance"].data[0] == pytest.approx(chance, abs=1e-3), "a copy"


def test_the_pull_is_the_gradient_at_the_logit_and_rewards_are_of_answer_or_steps():
    result = EXPERIMENT.result({"reward": "process"})
    checkpoint, sampled, marked = chains_of()
    expected = [np.mean([step.is_right for step in marking.steps]) for marking in marked]
    assert result["reward"].data == pytest.approx(expected)
    logits = checkpoint.model.decode(sampled.ids[:, :-1]).logits.detach().requires_grad_()
    advantages = torch.tensor(expected).float() - float(np.mean(expected))
    (log_probs_of(logits, sampled).sum(1) * advantages).sum().backward()
    targets = sampled.ids[:, sampled.n_prompt :, None]
    pull = logits.grad[:, sampled.n_prompt - 1 :].gather(2, targets)[..., 0]
    assert result["pull"].data == pytest.approx(pull.numpy() * sampled.is_sampled.numpy(), abs=1e-3)


def test_equal_rewards_move_nothing():
    result = EXPERIMENT.result({"question": " 38 × 94 = ", "model": "sums"})
    assert not result["advantage"].data.any()
    np.testing.assert_array_equal(result["before"].data, result["after"].data)
    assert result["is_right"].data.all()


@pytest.mark.parametrize(
    ("marked", "outcome", "process"),
    [("38*90+38*4=3420+152=3572", 1, 1), ("38*90+38*4=3420+152=3571", 0, 2 / 3), ("3572=", 0, 0.5)],
)
def test_an_outcome_is_of_the_answer_and_a_process_of_its_steps(marked, outcome, process):
    rewards = policy.rewards_of(mark(Problem(38, 94), marked))
    assert rewards == pytest.approx({"outcome": outcome, "process": process})


@pytest.mark.parametrize(
    "question", ["abc", "4*5", "99*100", "47*23=1081", "४७*२३", "<b>", "07*23"]
)
def test_what_is_no_product_is_refused_by_name(question):
    with pytest.raises(ValueError, match="is not a product of two numbers from 10 to 99"):
        EXPERIMENT.start({"question": question})


def test_the_kinds_have_fifty_problems_each_and_carries_are_those_of_column_addition():
    _, counts, solved = policy.curriculum("sums")
    assert min(counts) >= 50
    assert sum(counts) == 2 * (len(split().test) + len(split().valid))
    for problem in split().test[:60]:
        first, second = problem.products
        digits = [sum(map(int, str(number))) for number in (first, second, first + second)]
        # Each carry takes 10 from a column and gives 1 to the next.
        assert policy.n_carries(problem) == (digits[0] + digits[1] - digits[2]) / 9
    right = read_card(ZOO / "sums" / "CARD.md").metrics["sample"]["right"]  # of 500 of the 700
    assert np.average(solved, weights=counts) == pytest.approx(right, abs=0.03)
