"""GET /api/v1/models: cards."""

import json
import shutil
from dataclasses import replace

import pytest

from headlight.model.checkpoint.card import Example, read_card, write_card
from tests.model.checkpoint.test_profile import PROFILE

LONG = {
    "sites",
    "attentions",
    "rotation",
    "metrics",
    "expert_tokens",
    "trained_on",
    "began_from",
    "attribution",
} | {"heads", "corpus", "features", "checks", "omitted", "curves"}


def test_the_list_leaves_out_what_is_long_and_the_card_has_it(client):
    for short in client.get("/api/v1/models").json()["models"]:
        card = client.get(f"/api/v1/models/{short['id']}").json()
        assert set(card) - set(short) == LONG
        assert {name: card[name] for name in short} == short


@pytest.mark.parametrize("model", ["tiny", "turning", "slanted", "translator", "filler"])
def test_every_site_of_a_card_can_be_captured_with_the_axes_it_says(client, model):
    sites = client.get(f"/api/v1/models/{model}").json()["sites"]
    asked = {"text": "the cat", "model": model, "capture": ["*"]}
    tensors = client.post("/api/v1/trace", json=asked).json()["tensors"]
    assert {site["name"]: site["axes"] for site in sites} == {
        name: tensor["axes"] for name, tensor in tensors.items()
    }


HEADS = {name: part for name, part in PROFILE.items() if name != "revision"}


def test_a_card_has_the_profile_of_its_heads_if_it_is_of_these_weights(
    client_with, zoo, tmp_path, tiny
):
    for name, revision in (("profiled", tiny.description.revision), ("retrained", "0" * 16)):
        path = shutil.copytree(zoo / "tiny", tmp_path / name) / "heads.json"
        path.write_text(json.dumps({"revision": revision, **HEADS}))
    client = client_with(models_dir=tmp_path)
    profiled, retrained = (
        client.get(f"/api/v1/models/{name}").json() for name in ("profiled", "retrained")
    )
    assert profiled["heads"] == HEADS | {"feeders": None, "ablated_in": None}
    assert profiled["head_labels"] == {
        path: [
            {label: head["scores"][label]["score"] for label in head["labels"]} for head in heads
        ]
        for path, heads in HEADS["attentions"].items()
    }
    assert any(any(heads) for heads in profiled["head_labels"].values())
    assert retrained["heads"] is None
    assert retrained["head_labels"] == {}


def test_an_example_has_the_figures_of_its_claim_and_of_no_other(client_with, zoo, tmp_path):
    path = shutil.copytree(zoo / "tiny", tmp_path / "claiming") / "CARD.md"
    examples = {
        "Before": Example(text="A cat.", layer=0, head=1, claim="previous"),
        "Renamed": Example(text="A cat.", layer=0, head=1, claim="subject"),
        "Plain": "A cat.",
    }
    figures = {"claim": "previous", "score": 0.75, "control": 0.25, "sentences": 45}
    metrics = {"sample": {"examples": dict.fromkeys(examples, figures)}}
    write_card(path, replace(read_card(path), examples=examples, metrics=metrics))
    client = client_with(models_dir=tmp_path)
    listed = client.get("/api/v1/models/claiming").json()["examples"]
    assert listed[0]["claim"] == {
        **figures,
        "measure": "mean weight on the token before",
        "against": "uniform attention",
    }
    assert [example["claim"] for example in listed[1:]] == [None, None]
