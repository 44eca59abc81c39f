"""The recipe `rlhf`: samples, their rewards, the penalty and the bound."""

import itertools
import json

import pytest
import torch

from headlight.lab.training.loop import METRICS
from headlight.lab.training.recipes import rlhf
from headlight.lab.training.recipes.rlhf import (
    RlhfConfig,
    entropy_of_samples,
    kl_of_samples,
    rewards_of,
)
from headlight.model.generation.continuations import Continuations, sample_continuations
from tests.lab.training.conftest import require_equal_when_resumed

PARAGRAPH = "The quick brown fox saw a dog and then the cat chased the mouse over a street. "
STOP = 3


@pytest.fixture
def make_loop(begin, make_folder, tmp_path):
    """Return a loop whose reward is that of a random reward model: ``make_loop("out", kl=0.0)``."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"{n} {PARAGRAPH * 3}\n" for n in range(30)))
    policy, rater = (
        make_folder(seed=seed, n_layers=1, moe=None, has_reward=seed == 1) for seed in (0, 1)
    )

    def make(name="run", *, steps=6, begun_from=policy, reward=rater, **rows):
        rows = {
            "prompts": 2,
            "answers": 4,
            "n_prompt": 4,
            "n_answer": 5,
            "held_out": 2,
            "reward": str(reward),
            "reference": str(policy),
            **rows,
        }
        loop = {"steps": steps, "learning_rate": 3e-2, "warmup": 1, "save_every": 2}
        return begin("rlhf", [corpus], name, {"rows": rows, "loop": loop}, begun_from=begun_from)

    return make


def reports(loop):
    loop.run()
    return [json.loads(line) for line in (loop.out / METRICS).read_text().splitlines()]


def test_a_reward_is_read_before_the_stop_token(make_model):
    rater = make_model(has_reward=True)
    rows = torch.tensor([[1, 5, 6, 7, STOP, STOP], [1, 5, 9, 9, 9, 9], [1, 5, STOP, 8, 8, 8]])
    is_sampled = torch.tensor([[True] * 3 + [False], [True] * 4, [True] + [False] * 3])
    ended = torch.tensor([True, False, True])
    sampled = Continuations(
        ids=rows, log_probs=torch.zeros(3, 4), is_sampled=is_sampled, has_ended=ended
    )
    rewards = rewards_of(rater, sampled)
    for number, length in enumerate((4, 6, 2)):
        alone = rater(rows[number : number + 1, :length]).reward[0, -1]
        torch.testing.assert_close(rewards[number], alone)


def test_the_divergence_of_samples_is_that_of_the_distributions_of_whole_answers(make_model):
    """Against a sum over every answer of two tokens out of a vocabulary of five."""
    policy, reference = (make_model(seed=seed, vocab_size=5) for seed in (0, 1))
    prompts = torch.tensor([[1, 2]])

    def log_prob(model, answer):
        ids = torch.cat([prompts[0], torch.tensor(answer)])[None]
        logs = model(ids[:, :-1]).logits[0, -len(answer) :].log_softmax(-1)
        return logs[torch.arange(len(answer)), list(answer)].sum().item()

    answers = [(STOP,)] + [
        pair for pair in itertools.product(range(5), repeat=2) if pair[0] != STOP
    ]
    with torch.no_grad():
        logs = torch.tensor(
            [[log_prob(reader, a) for a in answers] for reader in (policy, reference)]
        )
        exact = (logs[0].exp() * (logs[0] - logs[1])).sum()
        assert logs[0].exp().sum() == pytest.approx(1, abs=1e-5)
        sampled = sample_continuations(
            policy,
            prompts.expand(1500, 2),
            n_tokens=2,
            stop_id=STOP,
            generator=torch.Generator().manual_seed(0),
        )
        ids = sampled.ids[:, :-1]
        divergences = kl_of_samples(policy(ids).logits, reference(ids).logits, sampled)
    assert divergences.min() >= 0
    assert divergences.mean() == pytest.approx(exact.item(), rel=0.1)


def test_the_entropy_of_samples_leaves_out_what_follows_the_stop_token():
    logits = torch.zeros(1, 3, 4)
    logits[0, 2] = torch.tensor([50.0, 0.0, 0.0, 0.0])
    sampled = Continuations(
        ids=torch.tensor([[1, 2, STOP, STOP]]),
        log_probs=torch.zeros(1, 3),
        is_sampled=torch.tensor([[True, True, False]]),
        has_ended=torch.tensor([True]),
    )
    assert entropy_of_samples(logits, sampled).item() == pytest.approx(1.386294, abs=1e-5)


@pytest.mark.slow
def test_the_reward_rises_and_the_penalty_keeps_the_model_near(make_loop, monkeypatch):
    """The reward is the share of tokens with a low number, about half of them at first."""

    def share(_model, sampled):
        return (sampled.ids[:, sampled.n_prompt :] < 150).float().mean(dim=1)

    monkeypatch.setattr(rlhf, "rewards_of", share)
    many = {"steps": 10, "answers": 16, "kl_bound": 1e9}
    free, kept = (reports(make_loop(f"run-{kl}", kl=kl, **many)) for kl in (0.0, 5.0))
    assert free[0]["kl"] == pytest.approx(0, abs=1e-5)
    assert free[0]["reward"] < 0.65
    assert free[-1]["reward"] > 0.85
    assert free[-1]["kl"] > 2 * kept[-1]["kl"]
    assert {"reward", "kl", "entropy", "rule", "loss", "step"} <= free[0].keys()


def test_it_stops_at_the_bound_of_the_divergence(make_loop):
    lines = reports(make_loop("bound", steps=40, kl=0.0, kl_bound=0.05))
    assert 1 < len(lines) < 40
    assert lines[-1]["kl"] > 0.05 >= max(line["kl"] for line in lines[:-1])
    assert lines[-1]["valid_loss"] is not None


def test_a_resumed_run_ends_with_the_same_weights(make_loop):
    require_equal_when_resumed(make_loop("whole"), make_loop("stopped"))


def test_what_cannot_rate_or_reads_other_tokens_is_rejected(make_loop, make_folder):
    with pytest.raises(
        ValueError, match="is not a reward model; --reward takes a model of the recipe"
    ):
        make_loop("one", reward=make_folder())
    with pytest.raises(ValueError, match="needs a reward model; name it with --reward"):
        make_loop("two", reward="")
    with pytest.raises(ValueError, match="must be less than the model's 48 tokens together"):
        make_loop("three", n_answer=44)


@pytest.mark.parametrize(
    ("changes", "problem"), [({"answers": 1}, r"answers \(1\) must be at least 2")]
)
def test_settings_out_of_range_are_rejected(changes, problem):
    with pytest.raises(ValueError, match=problem):
        RlhfConfig(**changes)
