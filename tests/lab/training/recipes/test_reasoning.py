"""The loop of imitation and reinforcement: both phases, what they learn from, and resuming."""

import json
from dataclasses import replace

import pytest
import torch

from headlight.lab.training.chains import reward_of
from headlight.lab.training.loop import METRICS
from headlight.lab.training.recipes import reasoning
from headlight.lab.training.recipes.reasoning import BEFORE
from headlight.lab.training.run import make_run, resume, start
from headlight.model.arithmetic import Problem, mark
from headlight.model.checkpoint.loading import CheckpointError, load
from headlight.model.corpus import CorpusError

SETTINGS = {
    "model": {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 16},
    "loop": {"steps": 6, "warmup": 1, "validate_every": 3, "save_every": 2, "learning_rate": 1e-3},
    "rows": {"imitation": 3, "count": 8, "problems": 3, "chains": 4, "updates": 2},
}


def make(tmp_path, name="run", **rows):
    settings = SETTINGS | {"rows": SETTINGS["rows"] | rows}
    run = make_run("reasoning", (), settings=settings, precision="float32")
    return start(run, tmp_path / name, device="cpu")


def lines(loop):
    return [json.loads(line) for line in (loop.out / METRICS).read_text().splitlines()]


def weights(loop):
    return torch.cat([tensor.flatten() for tensor in loop.model.weights().values()])


def stop_after(loop, step):
    def listen(report):
        if report.step == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop.run(listen)


@pytest.mark.slow
def test_a_run_imitates_and_then_reinforces(tmp_path):
    loop = make(tmp_path)
    assert loop.run()
    log = lines(loop)
    assert ["reward" in line for line in log] == [False] * 3 + [True] * 3
    assert [line["valid_loss"] is not None for line in log] == [False, False, True] * 2
    assert log[2]["valid_right"] == log[2]["valid_sound"] == 0
    assert log[-1]["entropy"] > 0
    assert load(loop.out / BEFORE).model.weights().keys() == loop.model.weights().keys()


@pytest.mark.parametrize(
    ("rows", "stopped_at"), [({}, 3), pytest.param({}, 5, marks=pytest.mark.slow)]
)
def test_a_resumed_run_ends_with_the_same_weights(tmp_path, rows, stopped_at):
    whole = make(tmp_path, "whole", **rows)
    whole.run()
    stop_after(make(tmp_path, "stopped", **rows), stopped_at)
    resumed = resume(tmp_path / "stopped", device="cpu")
    assert 0 < resumed.step <= stopped_at
    resumed.run()
    torch.testing.assert_close(weights(resumed), weights(whole), rtol=0, atol=0)
    assert [line["loss"] for line in lines(resumed)] == [line["loss"] for line in lines(whole)]


def _ascii_share(text):
    return sum(character.isascii() for character in text) / max(1, len(text))


def test_reinforcement_makes_the_rewarded_chains_more_probable(tmp_path, monkeypatch):
    """A toy reward that any model can earn: the share of ASCII characters."""
    monkeypatch.setattr(reasoning, "reward_of", lambda marking: _ascii_share(marking.steps[0].text))
    loop = make(tmp_path, imitation=0, rate=2e-2, updates=1, chains=8)
    loop.config = replace(loop.config, steps=30, validate_every=100, save_every=100)
    loop.run()
    rewards = [line["reward"] for line in lines(loop)]
    assert sum(rewards[-3:]) > sum(rewards[:3]) + 0.3


def test_chains_without_an_advantage_leave_the_weights_alone(tmp_path):
    loop = make(tmp_path, imitation=0)
    before = weights(loop).clone()
    loop.run()  # random chains are all wrong
    assert {line["used"] for line in lines(loop)} == {0.0}
    assert torch.equal(weights(loop), before)


def test_the_reward_is_computed_from_the_marks():
    right, wrong = "47*20+47*3=940+141=1081", "47*20+47*3=940+142=1082"
    problem = Problem(47, 23)
    assert reward_of(mark(problem, right)) == 1
    assert reward_of(mark(problem, wrong)) == 0


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"form": "prose"}, "form 'prose' is unknown; choose one of direct, short, chain"),
        ({"clip": -1.0}, "clip \\(-1.0\\) must be at least 0"),
        ({"chains": 0}, "chains \\(0\\) must lie between 1 and 65,536"),
    ],
)
def test_a_setting_out_of_its_range_is_rejected(tmp_path, rows, reason):
    with pytest.raises(ValueError, match=reason):
        make(tmp_path, **rows)


def test_a_corpus_is_rejected(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("47*23=1081\n")
    with pytest.raises(CorpusError, match="makes its own problems; leave out --corpus"):
        start(make_run("reasoning", [text], settings=SETTINGS), tmp_path / "run", device="cpu")


def test_a_damaged_state_is_named(tmp_path):
    loop = make(tmp_path)
    loop.run()
    (loop.out / "training.safetensors").write_bytes(b"no state")
    with pytest.raises(CheckpointError, match="does not continue this run"):
        resume(loop.out, device="cpu")
