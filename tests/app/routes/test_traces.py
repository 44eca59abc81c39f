"""POST /api/v1/trace: the requested tensors, in the requested format."""

import asyncio

import httpx
import numpy as np
import pytest

from headlight.model import tracing
from headlight.model.checkpoint.loading import load
from headlight.model.interventions.expert_ablation import ExpertAblation
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.no_scaling import NoScaling
from headlight.model.interventions.temperature import Temperature

TEXT = "The cat sat on the mat because it was tired."
WEIGHTS = "decoder.layers.{}.self_attention.weights"
TARGET = "target_tokens"


TRANSLATE = {"model": "translator"}
NO_SCALING = {"kind": "no_scaling"}


def post(client, text=TEXT, accept="application/json", **options):
    return client.post("/api/v1/trace", json={"text": text, **options}, headers={"accept": accept})


def test_the_default_holds_attention_positions_routing_and_the_next_token(client, tiny):
    body = post(client).json()
    assert sorted(body["tensors"]) == sorted(
        [
            WEIGHTS.format(0),
            WEIGHTS.format(1),
            "decoder.embedding.positional",
            "decoder.layers.1.experts.router_probs",
            "decoder.layers.1.experts.expert_indices",
            "decoder.layers.1.experts.expert_weights",
        ]
    )
    assert body["model"] == "tiny"
    assert body["revision"] == tiny.description.revision
    assert body["text"] == TEXT
    assert body["target_tokens"] is None
    assert body["heads"] is None
    assert {"tokenize_ms", "forward_ms", "analyses_ms"} <= set(body["timings"])


def translate(client, target="a small light reads", **options):
    return post(client, "the cat sat", model="translator", target=target, **options)


# --- edits ----------------------------------------------------------------------------------------


EDITS = [
    {"kind": "heads_off", "heads": [1, 3], "layer": 0},
    {"kind": "experts_off", "experts": [2]},
    {"kind": "no_scaling", "where": "decoder"},
    {"kind": "temperature", "value": 2.5, "layer": 1},
]


def test_an_edited_pass_is_that_of_a_direct_computation(client, tiny, from_json):
    edits = [
        HeadAblation(heads=(1, 3), layer=0),
        ExpertAblation(experts=(2,)),
        NoScaling(where="decoder"),
        Temperature(value=2.5, layer=1),
    ]
    edited = from_json(post(client, capture=["*"], edits=EDITS).json())
    expected = tracing.trace(tiny, TEXT, capture=["*"], interventions=edits).tensors
    plain = tracing.trace(tiny, TEXT, capture=["logits"]).tensors
    for site, array in edited.items():
        np.testing.assert_array_equal(array, expected[site].data)
    assert np.abs(edited["logits"] - plain["logits"].data).max() > 1e-3


def test_a_translation_is_made_without_the_edits_so_that_both_passes_read_the_same(client):
    plain = post(client, "the cat sat", model="translator").json()
    everything_off = [{"kind": "heads_off", "heads": [0, 1, 2, 3]}]
    edited = post(client, "the cat sat", model="translator", edits=everything_off).json()
    assert edited[TARGET] == plain[TARGET]
    assert edited["tensors"] != plain["tensors"]


@pytest.mark.parametrize(
    ("options", "kind", "members"),
    [
        ({"text": "\n\t \u3000"}, "empty-text", {}),
        ({"text": "a" * 8001}, "too-many-characters", {"limit": 8000, "actual": 8001}),
        ({"text": "zq" * 50}, "too-many-tokens", {"limit": 64, "actual": 101}),
        ({"model": "../tiny"}, "unknown-model", {}),
        ({"capture": ["decoder.layer.*"]}, "unknown-site", {}),
        ({"layers": [2]}, "unknown-layer", {}),
        ({"heads": [0, 4]}, "unknown-head", {}),
        ({"model": "filler", "target": "le chat"}, "no-target", {}),
        (TRANSLATE | {"target": "\n \u3000"}, "empty-text", {}),
        (TRANSLATE | {"target": "a" * 8001}, "too-many-characters", {"actual": 8001}),
        (TRANSLATE | {"target": "zq" * 50}, "too-many-tokens", {"limit": 64, "actual": 101}),
        ({"analyses": ["next_token", "alignment"]}, "no-such-analysis", {}),
        ({"edits": [NO_SCALING | {"layer": 7}]}, "unknown-layer", {}),
        ({"edits": [{"kind": "experts_off", "experts": [4]}]}, "unknown-expert", {}),
        ({"edits": [NO_SCALING | {"where": "cross"}]}, "impossible-edit", {}),
    ],
)
def test_an_impossible_request_is_rejected(client, problem, options, kind, members):
    body = problem(post(client, **options), 404 if kind == "unknown-model" else 422, kind)
    assert body | members == body
    if "target" in options and kind.startswith("too-many"):
        assert "target" in body["detail"]
    elif kind.startswith("too-many"):
        assert "or read up to 131,072 tokens with resolution or queries" in body["detail"]


def test_too_many_cells_are_refused_with_limit_and_actual(client_with, problem):
    client = client_with(max_cells=1000)
    asked = {"text": "z" * 15, "capture": ["*.weights"], "analyses": []}
    body = problem(post(client, **asked), 422, "too-many-cells")
    assert (body["limit"], body["actual"]) == (1000, 2 * 4 * 16 * 16)
    assert body["detail"] == (
        "2,048 numbers to send are more than the 1,000 that are allowed; ask for fewer sites, "
        "layers, heads or analyses, or send a shorter text (setting HEADLIGHT_MAX_CELLS)"
    )
    assert post(client, **asked, layers=[0], heads=[3]).status_code == 200


def test_concurrent_requests_for_different_models_do_not_mix(server, zoo, from_json):
    checkpoints = {model: load(zoo / model) for model in ("translator", "tiny", "filler", "dense")}
    asked = [
        {"text": f"the cat {n}", "model": model}
        | ({"target": f"a light {n}"} if model == "translator" else {})
        for n in range(10)
        for model in checkpoints
    ]

    async def ask_all():
        async with httpx.AsyncClient(base_url=server.url, timeout=None) as client:
            return await asyncio.gather(*(post(client, **options) for options in asked))

    for options, response in zip(asked, asyncio.run(ask_all()), strict=True):
        body = response.json()
        assert (body["model"], body["text"]) == (options["model"], options["text"])
        checkpoint = checkpoints[options["model"]]
        expected = tracing.trace(checkpoint, options["text"], options.get("target")).tensors
        arrays = from_json(body)
        assert arrays.keys() == expected.keys()
        for site, array in arrays.items():
            np.testing.assert_allclose(array, expected[site].data, atol=1e-6)
