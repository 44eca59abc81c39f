"""The edit `quantize` over REST equals a model that was stored with fewer bits."""

import math

import numpy as np
import pytest
import torch

from headlight.model.checkpoint.loading import load, save
from headlight.model.interventions.intervene import require_quantizable
from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.model.quantization.affine import Quantization
from headlight.model.tracing import trace
from headlight.tracing.results import analyse

TEXT, TARGET = "the cat sat on the mat", "a small light reads"
SITES = ["logits", "*attention.weights"]


def post(client, model="tiny", path="trace", **members):
    target = {"target": TARGET} if model == "translator" else {}
    asked = {"text": TEXT, "model": model, **target, **members}
    return client.post(f"/api/v1/{path}", json=asked)


def logits(answer):
    assert answer.status_code == 200, answer.text
    return np.array(answer.json()["tensors"]["logits"]["data"], np.float32)


def edit(bits, **members):
    return {"capture": ["logits"], "edits": [{"kind": "quantize", "bits": bits, **members}]}


@pytest.mark.parametrize("model", ["tiny", "translator", "filler", "turning"])
def test_every_tensor_is_that_of_a_stored_copy_and_the_shared_model_stays(
    client, zoo, tmp_path, model
):
    parts = ["*.layers.1", "*.embedding"]
    checkpoint = load(zoo / model)
    plain = post(client, model, capture=SITES).json()["tensors"]
    asked = {"kind": "quantize", "bits": 3, "parts": parts, "per": "tensor"}
    tensors = post(client, model, capture=SITES, edits=[asked]).json()["tensors"]
    stored = Quantization(bits=3, parts=tuple(parts), per="tensor")
    card = checkpoint.description.card
    folder = tmp_path / "copy"
    save(
        folder,
        checkpoint.model,
        checkpoint.tokenizer,
        card,
        dtype=torch.float32,
        quantization=stored,
    )
    target = TARGET if model == "translator" else None
    expected = trace(load(folder), TEXT, target, capture=SITES).tensors
    assert list(tensors) == list(expected)
    for site, array in expected.items():
        np.testing.assert_allclose(tensors[site]["data"], array.data, rtol=0, atol=1e-5)
    assert tensors["logits"] != plain["logits"]
    assert post(client, model, capture=SITES).json()["tensors"] == plain


@pytest.mark.parametrize(
    ("members", "kind", "said"),
    [
        ({"bits": 1}, "invalid-request", ""),
        ({"parts": ["decoder.tail"]}, "unknown-part", "matches 'decoder.tail'; it has decoder"),
    ],
)
def test_what_cannot_be_quantized_is_said(client, problem, members, kind, said):
    quantize = {"kind": "quantize", "bits": 4, **members}
    assert said in problem(post(client, edits=[quantize]), 422, kind)["detail"]


def test_overlaps_and_other_weights_are_rejected(client, problem):
    overlapping = [*edit(4)["edits"], *edit(2, parts=["*.embedding"])["edits"]]
    detail = problem(post(client, edits=overlapping), 422, "impossible-edit")["detail"]
    assert "decoder.embedding.vectors.weight is quantized twice" in detail
    four = Quantization(bits=4)
    with pytest.raises(ImpossibleIntervention, match="already, to 8 bits"):
        require_quantizable(["a.weight"], [four], Quantization(bits=8))
    with pytest.raises(ImpossibleIntervention, match="has no weights that can be quantized"):
        require_quantizable([], [four])
    require_quantizable([], [])


# --- the analysis ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["tiny", "translator", "filler"])
def test_the_sensitivity_of_a_part_is_the_divergence_of_the_edited_pass(client, zoo, model):
    answer = post(client, model, capture=["logits"], analyses=["quantization_sensitivity"])
    plain = torch.from_numpy(logits(answer)).double().log_softmax(dim=-1)
    sensitivity = answer.json()["analyses"]["quantization_sensitivity"]
    parts, bits = sensitivity["parts"], sensitivity["bits"]["data"]
    assert parts[0] == "*"
    assert bits == [8, 4, 2]
    ids = [token["id"] for token in answer.json()["target_tokens"] or answer.json()["tokens"]]
    ids = torch.tensor(ids if model == "filler" else ids[1:])
    entropy = torch.nn.functional.cross_entropy
    loss = entropy(plain[: len(ids)], ids).item() / math.log(2)
    for part in (parts[0], parts[-1]):
        asked = {} if part == "*" else {"parts": [part]}
        rounded = torch.from_numpy(logits(post(client, model, **edit(2, **asked))))
        rounded = rounded.double().log_softmax(dim=-1)
        expected = torch.nn.functional.kl_div(
            rounded, plain, log_target=True, reduction="batchmean"
        ).item() / math.log(2)
        place = parts.index(part)
        assert sensitivity["divergence"]["data"][2][place] == pytest.approx(expected, abs=1e-5)
        expected = entropy(rounded[: len(ids)], ids).item() / math.log(2)
        assert sensitivity["loss"]["data"][2][place] == pytest.approx(expected, abs=1e-5)
        change = sensitivity["loss_change"]["data"][2][place]
        assert change == pytest.approx(expected - loss, abs=1e-5)
    eight, _, two = np.array(sensitivity["divergence"]["data"])
    assert (eight < two).all()


def test_the_sensitivity_is_that_of_the_model_as_it_is(client, problem, tiny):
    names = ["quantization_sensitivity"]
    detail = problem(post(client, analyses=names, **edit(4)), 422, "impossible-edit")["detail"]
    assert "leave the edits out" in detail
    short = trace(tiny, ids=[5], capture=["logits"])
    with pytest.raises(Exception, match="none after it to predict"):
        analyse("quantization_sensitivity", short, tiny)
