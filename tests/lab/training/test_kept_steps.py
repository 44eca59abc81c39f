"""States of a run that are kept as models, and what is measured at them."""

import json
from dataclasses import replace

import pytest
import torch

from headlight.lab.evaluation.steps import write_scores
from headlight.lab.training.kept_steps import kept_steps
from headlight.lab.training.run import resume, start
from headlight.model.checkpoint.loading import load
from headlight.model.checkpoint.steps import SCORES, read_states, steps_in
from tests.lab.training.conftest import stop_at


@pytest.mark.parametrize(
    ("count", "steps", "kept"),
    [(5, 512, (0, 8, 32, 128, 512)), (3, 100, (0, 8, 100)), (9, 4, (0, 4)), (1, 64, (0, 64))],
)
def test_kept_steps_are_evenly_spaced_in_the_logarithm(count, steps, kept):
    assert kept_steps(count, steps) == kept


def test_a_run_that_was_stopped_keeps_the_states_of_one_that_was_not(tmp_path, run):
    run = replace(run, loop=replace(run.loop, steps=12, save_every=3, keep_steps=3))
    whole = start(run, tmp_path / "whole", device="cpu")
    whole.run()
    stopped = start(run, tmp_path / "stopped", device="cpu")
    stop_at(10, stopped)
    resume(tmp_path / "stopped", device="cpu").run()
    for step, path in steps_in(tmp_path / "whole").items():
        one, other = load(path).model, load(tmp_path / "stopped" / f"step{step}").model
        assert all(
            torch.equal(*pair) for pair in zip(one.parameters(), other.parameters(), strict=True)
        )
    assert list(steps_in(tmp_path / "whole")) == [0, 8, 12]


def test_scores_are_those_of_each_state_by_other_code(tmp_path, run, monkeypatch):
    monkeypatch.setattr("headlight.lab.evaluation.steps.ROW", 12)
    monkeypatch.setattr("headlight.lab.evaluation.steps.LIST", 5)
    run = replace(run, loop=replace(run.loop, steps=9, keep_steps=3))
    out = tmp_path / "out"
    start(run, out, device="cpu").run()
    text = "The cat sat on the mat, and the dog sat by the door of the house. " * 3
    write_scores(out, [text], named=["text.txt"])
    states = read_states(out)
    assert [state["step"] for state in states] == [0, 8, 9]
    assert states[2]["tokens"] > states[1]["tokens"] > states[0]["tokens"] == 0
    checkpoint = load(out / "step9")
    ids = checkpoint.tokenizer.encode_ids([text])[0]
    rows = [ids[at : at + 12] for at in range(0, len(ids) - 11, 12)]
    assert json.loads((out / SCORES).read_text())["rows"] == len(rows)
    total = n_queries = 0
    for row in rows:
        with checkpoint.model.capture(["decoder.layers.1.self_attention.weights"]) as captured:
            checkpoint.model(torch.tensor([[checkpoint.tokenizer.start_id, *row[:-1]]]))
        (weights,) = captured.values()
        for query in range(1, 12):
            total += weights[0, 1, query, query - 1].item()
            n_queries += 1
    assert states[2]["previous"][1][1] == pytest.approx(total / n_queries, abs=1e-4)
