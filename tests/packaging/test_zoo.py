"""The models that ship: complete, and small enough to be cloned by everybody."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from torch import cosine_similarity

from headlight.main import create_app
from headlight.model.checkpoint.loading import load, tokenizer_file
from headlight.model.checkpoint.steps import steps_in
from headlight.settings import Settings

ZOO = Path(__file__).parents[2] / "model" / "zoo"
MEGABYTE = 10**6
MODELS = sorted(path.parent for path in ZOO.glob("*/config.json"))


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


SHIPPED = {
    "stories": "decoder",
    "stories-preferred": "decoder",
    "stories-reward": "decoder",
    "stories-small": "decoder",
    "translate": "encoder-decoder",
    "fill": "encoder",
    "forming": "decoder",
    "positions-alibi": "decoder",
    "positions-learned": "decoder",
    "positions-rotary": "decoder",
    "positions-sinusoidal": "decoder",
    "sums": "decoder",
    "sums-direct": "decoder",
    "sums-imitation": "decoder",
}


@pytest.fixture(scope="module")
def client():
    """Yield a server of the models that ship, as `headlight serve` makes it."""
    app = create_app(Settings(models_dir=None, queue_seconds=100, work_seconds=100))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("model", SHIPPED)
def test_a_shipped_model_gives_what_its_card_lists(model, client):
    card = client.get(f"/api/v1/models/{model}").json()
    assert card["kind"] == SHIPPED[model]
    assert card["examples"]
    for example in card["examples"]:
        answer = client.post("/api/v1/trace", json={"model": model, "text": example["text"]})
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert (body["target_tokens"] is not None) == (card["kind"] == "encoder-decoder")
        weights = [site for site in body["tensors"] if site.endswith("_attention.weights")]
        n_attentions = 3 if card["kind"] == "encoder-decoder" else 1
        assert len(weights) == n_attentions * card["n_layers"]
    analyses = set(card["analyses"]) - {"patching", "score_attribution"}  # need options
    asked = {"model": model, "text": card["examples"][0]["text"], "analyses": sorted(analyses)}
    answer = client.post("/api/v1/trace", json=asked)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()["analyses"]) == analyses


def test_a_model_that_began_with_another_has_nearly_its_weights(client):
    """Compare takes the heads of both for the same."""
    began = {model: client.get(f"/api/v1/models/{model}").json()["began_from"] for model in SHIPPED}
    pairs = {model: first for model, first in began.items() if first in SHIPPED}
    assert pairs
    for model, first in pairs.items():
        ours, theirs = (load(name).model.weights() for name in (model, first))
        alike = [
            cosine_similarity(ours[name].flatten().float(), theirs[name].flatten().float(), dim=0)
            for name in ours
            if ours[name].ndim > 1 and name in theirs
        ]
        assert min(alike) > 0.5, (model, first)


def test_the_twins_differ_in_their_positions_alone():
    twins = [model for model in MODELS if model.name.startswith("positions-")]
    configs = [json.loads((twin / "config.json").read_text()) for twin in twins]
    assert len({config.pop("positional") for config in configs}) == 4
    # Only learned positions end where training did.
    assert sorted(config.pop("max_tokens") for config in configs) == [128, 256, 256, 256]
    assert all(config == configs[0] for config in configs)
    assert len({tokenizer_file(twin) for twin in twins}) == 1


OPTIONAL = {"heads.json", "curves.json", "atlas", "steps.json"}


def test_the_atlases_are_of_their_models_and_small_together(client):
    shipped = [model for model in MODELS if (model / "atlas").is_dir()]
    assert {model.name for model in shipped} == {"stories", "fill", "translate"}
    assert sum(size(model / "atlas") for model in shipped) <= 3 * MEGABYTE
    for model in shipped:
        atlas = client.get(f"/api/v1/models/{model.name}/atlas")
        assert atlas.status_code == 200, f"renew it with `make atlases`: {atlas.text}"
        found = client.get(f"/api/v1/models/{model.name}/atlas/search", params={"to_tag": "noun"})
        assert found.json()["heads"]
        assert {path.name for path in (model / "atlas").iterdir()} == {
            *("atlas.json", "heads.json", "summary.json"),
            *("edges", "sentences", "tokens"),
        }


def test_models_are_whole_and_small_enough_to_be_cloned():
    files = {"CARD.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert {model.name for model in MODELS} == set(SHIPPED)
    for model in MODELS:
        config = json.loads((model / "config.json").read_text())
        expected = files - {"tokenizer.json"} if "difference" in config else files
        states = {path.name for path in steps_in(model).values()}
        assert {path.name for path in model.iterdir()} - OPTIONAL - states == expected
        assert size(model) <= 30 * MEGABYTE
    assert size(ZOO) <= 62 * MEGABYTE


def test_no_claim_about_a_model_rests_on_fewer_than_fifty_texts():
    for model in MODELS:
        counts = re.findall(r"^ +sentences: (\d+)$", (model / "CARD.md").read_text(), re.MULTILINE)
        assert min(map(int, counts)) >= 50, model.name


def test_no_tokenizer_is_stored_twice():
    files = [model / "tokenizer.json" for model in MODELS if (model / "tokenizer.json").exists()]
    whole = [file.read_bytes() for file in files if file.stat().st_size > 512]
    assert len(set(whole)) == len(whole) == 6
    assert {tokenizer_file(model) for model in MODELS} <= set(files)
