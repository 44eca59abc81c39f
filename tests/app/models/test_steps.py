"""The states of a training: each is a model, of a request's step or of a name with one."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.loading import find_model, load, save
from headlight.model.checkpoint.steps import SCORES
from headlight.problems import Problem
from headlight.settings import Settings

STEPS = (0, 8, 64)
FEW = {"repeat_gain": 0.5, "early_loss": 3.0, "late_loss": 2.5}


@pytest.fixture(scope="module")
def models(zoo, tmp_path_factory):
    """Return a directory with a training in the form of Headlight, and one in that of Pythia."""
    parent, dense = tmp_path_factory.mktemp("models"), load(zoo / "dense")
    shutil.copytree(zoo / "dense", parent / "grown")
    n_layers, n_heads = dense.config.n_layers, dense.config.n_heads
    states = []
    for step in STEPS:
        model, card = dense.model, dense.description.card
        with torch.no_grad():
            model.vectors.mul_(0.9)
        for whole in ("grown", "suite"):
            save(parent / whole / f"step{step}", model, dense.tokenizer, card)
            card = replace(card, title=f"step{step}")  # as a state without a card has
        (parent / "grown" / f"step{step}" / "tokenizer.json").unlink()
        scores = [[step / 100] * n_heads] * n_layers
        states.append(
            {"step": step, "tokens": 10 * step, "previous": scores, "induction": scores, **FEW}
        )
    content = {"text": ["held_out.txt"], "rows": 64, "states": states}
    (parent / "grown" / SCORES).write_text(json.dumps(content))
    return parent


@pytest.fixture
def client(client_with, models):
    return client_with(models_dir=models)


def predictions(client, **of):
    body = {"text": "the cat", "analyses": ["next_token"], **of}
    answer = client.post("/api/v1/trace", json=body)
    assert answer.status_code == 200, answer.json()
    return answer.json()["model"], answer.json()["id"], answer.json()["analyses"]["next_token"]


def test_a_step_of_a_request_names_a_state_with_numbers_and_an_id_of_its_own(client):
    assert predictions(client, model="grown", step=8) == predictions(client, model="grown@8")
    asked = [predictions(client, model="grown", **of) for of in ({}, *({"step": n} for n in STEPS))]
    assert [model for model, *_ in asked] == ["grown", *(f"grown@{step}" for step in STEPS)]
    assert len({trace_id for _, trace_id, _ in asked}) == len(asked)
    assert len({json.dumps(predicted) for *_, predicted in asked}) == len(asked)


def test_states_are_of_their_model_in_the_list_and_have_labels_by_their_own_scores(client):
    listed = {card["id"]: card for card in client.get("/api/v1/models").json()["models"]}
    assert [state["step"] for state in listed["grown"]["steps"]] == list(STEPS)
    assert [state["tokens"] for state in listed["suite"]["steps"]] == [None] * 3
    assert not any("@" in model for model in listed)
    assert listed["suite"]["title"] == "suite"
    card = client.get("/api/v1/models/grown@64").json()
    assert all(head == {"induction": 0.64, "previous": 0.64} for head in first_heads(card))
    assert not any(first_heads(client.get("/api/v1/models/grown@8").json()))
    assert card["revision"] != listed["grown"]["revision"]


def first_heads(card):
    return card["head_labels"]["decoder.layers.0.self_attention"]


def test_a_folder_of_nothing_but_states_is_its_last_one(client):
    assert predictions(client, model="suite")[2] == predictions(client, model="suite", step=64)[2]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"model": "grown", "step": 9}, 404, "'grown' has no step '9'; its steps are 0, 8, 64"),
        ({"model": "dense", "step": 8}, 404, "'dense' has no step '8'; it has no steps"),
        ({"model": "grown@../step8"}, 404, "has no step '../step8'"),
        ({"step": 8}, 422, "is the step of a model; name it in model"),
        ({"model": "grown", "step": -1}, 422, "step"),
    ],
)
def test_a_step_that_is_not_there_is_told(client, body, status, told):
    answer = client.post("/api/v1/trace", json={"text": "a", **body})
    assert answer.status_code == status
    assert told in json.dumps(answer.json())


def test_the_name_of_a_state_is_found_in_process(models):
    assert load(find_model("grown@8", models)).id == "grown@8"
    with pytest.raises(CheckpointError, match=r"'grown' has no step '9'; its steps are 0, 8, 64"):
        find_model("grown@9", models)


def test_damaged_scores_are_a_damaged_model(models, zoo):
    path = models / "grown" / SCORES
    before = path.read_text()
    path.write_text(before.replace('"rows": 64', '"rows": "64"'))
    try:
        from headlight.models.model_registry import registry_of

        with pytest.raises(Problem, match=r"steps\.json is malformed"):
            registry_of(Settings(zoo_dir=zoo, models_dir=models)).describe("grown")
    finally:
        path.write_text(before)
