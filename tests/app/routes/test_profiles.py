"""GET and POST /api/v1/models/{model}/profile: the offer, the reasons against, the events."""

import json
import os
import shutil
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from headlight.main import create_app
from headlight.model.checkpoint.profile import HEADS, to_json
from tests.app.reading import events_of
from tests.model.checkpoint.test_profile import PROFILE


@pytest.fixture
def folder(zoo, tmp_path):
    """Return the folder of a model of a reader's own."""
    return shutil.copytree(zoo / "dense", tmp_path / "models" / "mine")


@pytest.fixture
def client(settings, folder):
    """Yield a reader of a server with that model."""
    own = settings.model_copy(update={"models_dir": folder.parent, "visitors_profile": True})
    with TestClient(create_app(own), base_url="http://localhost") as reader:
        yield reader


def path_of(model):
    return f"/api/v1/models/{model}/profile"


def card(client):
    return client.get("/api/v1/models/mine").json()


@pytest.mark.slow
def test_a_profile_is_measured_step_by_step_and_is_then_on_the_card(client, folder):
    assert client.get(path_of("mine")).json()["reason"] == ""
    assert card(client)["heads"] is None
    answer = client.post(path_of("mine"), json={"sentences": 8})
    events = events_of(answer)
    assert {event for event, _ in events[:-1]} == {"progress"}
    shares = [data["share"] for _, data in events[:-1]]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert events[-1] == ("end", {"sentences": 8})
    assert json.loads((folder / HEADS).read_text())["sentences"] == 8
    assert card(client)["heads"]["sentences"] == 8
    assert "measured already" in client.get(path_of("mine")).json()["reason"]


def test_a_profile_that_another_worker_measured_is_read(client, folder):
    revision = card(client)["revision"]
    (heads,) = PROFILE["attentions"].values()
    attentions = {"decoder.layers.0.self_attention": 4 * heads}
    profile = {**PROFILE, "revision": revision, "attentions": attentions}
    (folder / HEADS).write_text(to_json(profile), encoding="utf-8")
    client.get("/api/v1/models")
    assert card(client)["heads"]["sentences"] == 1
    table = client.get(f"{path_of('mine')[:-8]}/heads.parquet")
    assert "mine-heads.parquet" in table.headers["content-disposition"]
    rows = pq.read_table(pa.BufferReader(table.content)).to_pylist()
    assert [(row["previous"], row["previous_control"]) for row in rows] == 4 * [(0.9, 0.1)]


def test_a_damaged_profile_makes_its_model_unavailable_with_the_reason(client, folder):
    (folder / HEADS).write_text("{")
    listed = client.get("/api/v1/models").json()
    assert [model["id"] for model in listed["unavailable"]] == ["mine"]


def test_a_folder_that_cannot_be_written_is_refused_in_a_sentence(
    client, folder, monkeypatch, problem
):
    is_allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and is_allowed(path, mode))
    assert "read-only" in client.get(path_of("mine")).json()["reason"]
    problem(client.post(path_of("mine"), json={}), 403, "no-profile")


def test_a_full_disk_is_told_before_anything_is_measured(client, monkeypatch, problem):
    full = SimpleNamespace(free=1_000)
    monkeypatch.setattr("headlight.serving.profile_runs.disk_usage", lambda _: full)
    assert "disk of mine is full" in client.get(path_of("mine")).json()["reason"]
    problem(client.post(path_of("mine"), json={}), 403, "no-profile")


def test_a_server_may_measure_nothing(settings, folder, problem):
    own = settings.model_copy(update={"models_dir": folder.parent, "profile_seconds": 0})
    with TestClient(create_app(own), base_url="http://localhost") as client:
        assert "HEADLIGHT_PROFILE_SECONDS" in client.get(path_of("mine")).json()["reason"]
        problem(client.post(path_of("mine"), json={}), 403, "no-profile")


def test_visitors_measure_nothing_unless_a_setting_or_a_key_allows_it(settings, folder, problem):
    own = settings.model_copy(update={"models_dir": folder.parent})
    with TestClient(create_app(own), base_url="http://localhost") as client:
        assert "HEADLIGHT_VISITORS_PROFILE" in client.get(path_of("mine")).json()["reason"]
        problem(client.post(path_of("mine"), json={}), 403, "no-profile")
    keyed = own.model_copy(update={"api_keys": (SecretStr("a-key-of-sixteen"),)})
    with TestClient(create_app(keyed), base_url="http://localhost") as client:
        key = {"x-api-key": "a-key-of-sixteen"}
        assert client.get(path_of("mine"), headers=key).json()["reason"] == ""
        problem(client.post(path_of("mine"), json={}), 401, "key-missing")


@pytest.mark.parametrize("sentences", [7, 1_001, "many"])
def test_a_wrong_number_of_sentences_is_rejected(client, problem, sentences):
    problem(client.post(path_of("mine"), json={"sentences": sentences}), 422, "invalid-request")


def test_an_unknown_model_has_no_offer(client, problem):
    problem(client.get(path_of("none")), 404, "unknown-model")
    problem(client.post(path_of("none"), json={}), 404, "unknown-model")
