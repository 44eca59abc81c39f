"""The balance loss spreads the load, and both runs are trained as they say."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from headlight.model.experiments import balance
from headlight.model.experiments.balance import EXPERIMENT, Balance, Clusters, Run
from headlight.model.moe import load_balance_loss

SMALL = {"n_experts": 4, "n_clusters": 4, "d_model": 8, "steps": 150, "common": 4.0}
WITHOUT, WITH = 0, 1


@pytest.fixture(scope="module")
def trained():
    return EXPERIMENT.result({**SMALL, "coefficient": 0.5})


@pytest.mark.slow
def test_the_balance_loss_spreads_the_load(trained):
    effective = trained["effective_experts"].data
    assert effective[WITHOUT, 0] == effective[WITH, 0]
    assert effective[WITH, -1] > 3.8
    assert effective[WITHOUT, -1] < effective[WITH, -1] - 0.2
    assert trained["tested_balance_loss"].data[WITH, -1] == pytest.approx(1, abs=0.05)
    assert trained["load"].data[WITH, -1].max() < trained["load"].data[WITHOUT, -1].max()


def test_the_loads_are_those_of_the_experts_module(watch):
    parameters = Balance(**SMALL)
    tokens = Clusters(parameters).draw(np.random.default_rng(0))
    run = Run(parameters, 0.0)
    module = watch(run.experts)
    with torch.no_grad(), module.capture(["part.*"]) as captured:
        module(tokens.x)
    probs, indices = run.routing(tokens)
    torch.testing.assert_close(probs, captured["part.router_probs"].flatten(0, 1))
    assert (indices == captured["part.expert_indices"].flatten(0, 1)).all()
    loads = balance._loads(probs, indices, tokens.cluster.flatten(), parameters)
    counts = np.bincount(indices.flatten().numpy(), minlength=4)
    assert loads["load"] == pytest.approx(counts / counts.sum())
    assert loads["tested_balance_loss"] == pytest.approx(load_balance_loss(probs, indices).item())
    of_cluster = indices[tokens.cluster.flatten() == 2].flatten().numpy()
    expected = np.bincount(of_cluster, minlength=4) / len(of_cluster)
    assert loads["cluster_load"][2] == pytest.approx(expected)


def test_a_step_descends_the_loss_plus_the_weighted_balance_loss():
    parameters = Balance(**SMALL)
    tokens = Clusters(parameters).draw(np.random.default_rng(0))
    experts = balance.make_experts(parameters)
    output, spread = experts(tokens.x)
    (F.mse_loss(output, tokens.y) + 0.3 * spread).backward()
    run = Run(parameters, 0.3)
    before = [parameter.detach().clone() for parameter in run.experts.parameters()]
    assert run.train(tokens) == pytest.approx((F.mse_loss(output, tokens.y).item(), spread.item()))
    rate = parameters.learning_rate
    for old, new, like in zip(before, run.experts.parameters(), experts.parameters(), strict=True):
        # The first step of Adam has the length of the rate, against the sign of the gradient.
        gradient = like.grad
        moved = gradient.abs() > 1e-6
        torch.testing.assert_close(
            (new - old)[moved], -rate * gradient.sign()[moved], rtol=0.02, atol=1e-5
        )


def test_effective_experts_by_hand():
    parameters = Balance(n_experts=4, n_clusters=1, top_k=1)
    indices = torch.tensor([[0], [0], [1], [1]])
    probs = torch.full((4, 4), 0.25, dtype=torch.float64)
    loads = balance._loads(probs, indices, torch.zeros(4, dtype=torch.int64), parameters)
    assert loads["effective_experts"] == pytest.approx(2)


def test_with_a_coefficient_of_0_both_runs_are_equal():
    arrays = EXPERIMENT.result({**SMALL, "coefficient": 0.0, "steps": 5})
    assert (arrays["loss"].data[WITHOUT] == arrays["loss"].data[WITH]).all()


def test_more_choices_than_experts_are_rejected():
    with pytest.raises(ValueError, match=r"top_k \(3\) must be at most n_experts \(2\)"):
        EXPERIMENT.start({"top_k": 3, "n_experts": 2})


def test_both_runs_train_on_tokens_that_no_frame_is_measured_on(monkeypatch):
    tokens = []
    draw = Clusters.draw
    monkeypatch.setattr(
        Clusters, "draw", lambda self, rng: tokens.append(draw(self, rng)) or tokens[-1]
    )
    for seed in (0, 1):
        EXPERIMENT.result({**SMALL, "steps": 2, "seed": seed})
    assert len(tokens) == 6  # those of the frames, and one batch for each step
    clusters = [each.cluster.flatten().tolist() for each in tokens]
    assert len({tuple(each) for each in clusters}) == 6
