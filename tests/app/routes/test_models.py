"""GET /api/v1/models: cards."""

import shutil


def test_every_model_is_listed_and_the_default_is_named(client):
    body = client.get("/api/v1/models").json()
    assert body["default"] == "tiny"
    assert [card["id"] for card in body["models"]] == ["dense", "tiny"]
    assert body["unavailable"] == []


def test_a_card_says_what_the_model_is(client, tiny):
    card = client.get("/api/v1/models/tiny").json()
    sites = card.pop("sites")
    assert card == {
        "id": "tiny",
        "title": "Tiny",
        "kind": "decoder",
        "n_layers": 2,
        "n_heads": 4,
        "d_model": 16,
        "d_ff": 24,
        "vocab_size": tiny.tokenizer.vocab_size,
        "max_tokens": 64,
        "positional": "sinusoidal",
        "moe": {"n_experts": 4, "top_k": 2, "layers": [1]},
        "parameters": sum(parameter.numel() for parameter in tiny.model.parameters()),
        "revision": tiny.description.revision,
        "licence": "MIT",
        "trained_on": [],
        "attribution": [],
        "metrics": {},
        "examples": [{"title": "A cat", "text": "The cat sat."}],
    }
    assert {
        "name": "decoder.layers.1.self_attention.weights",
        "axes": ["head", "query", "key"],
    } in sites


def test_every_site_of_a_card_can_be_captured_with_the_axes_it_says(client):
    sites = client.get("/api/v1/models/tiny").json()["sites"]
    asked = {"text": "the cat", "capture": ["*"]}
    tensors = client.post("/api/v1/trace", json=asked).json()["tensors"]
    assert {site["name"]: site["axes"] for site in sites} == {
        name: tensor["axes"] for name, tensor in tensors.items()
    }


def test_a_dense_model_is_called_dense(client):
    assert client.get("/api/v1/models/dense").json()["moe"] is None


def test_an_unknown_model_is_refused(client, problem):
    body = problem(client.get("/api/v1/models/gpt"), 404, "unknown-model")
    assert body["available"] == ["dense", "tiny"]


def test_a_damaged_model_is_listed_with_its_reason(client_with, zoo, tmp_path, problem):
    broken = shutil.copytree(zoo / "tiny", tmp_path / "broken")
    (broken / "tokenizer.json").unlink()
    client = client_with(models_dir=tmp_path)
    body = client.get("/api/v1/models").json()
    assert [card["id"] for card in body["models"]] == ["dense", "tiny"]
    assert [found["id"] for found in body["unavailable"]] == ["broken"]
    assert "broken/tokenizer.json" in body["unavailable"][0]["reason"]
    problem(client.get("/api/v1/models/broken"), 503, "model-unavailable")
