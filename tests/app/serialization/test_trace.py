"""A Trace becomes JSON or safetensors without losing a number."""

import json

import numpy as np
import pytest

from headlight.errors import Problem
from headlight.model.trace import NamedArray, Token, Trace
from headlight.serialization.formats import JSON, SAFETENSORS, Form
from headlight.serialization.trace import Analysis, Answer, encode

FILE = Form(media_type=SAFETENSORS)
SMALL_FILE = Form(media_type=SAFETENSORS, dtype="uint16")
SCORES = "decoder.layers.0.self_attention.scores"
WEIGHTS = "decoder.layers.0.self_attention.weights"
INDICES = "decoder.layers.0.experts.expert_indices"
MASKED = np.array([[[0.1, -np.inf], [2.0, -3.5]]], dtype=np.float32)
TOKEN = Token(id=5, text="\u2028 cat\U0001f600", start=0, end=5, word=0, is_special=False)


def answer_with(**arrays):
    axes = {
        "scores": ("head", "query", "key"),
        "weights": ("head", "query", "key"),
        "expert_indices": ("query", "top_k"),
    }
    names = {"scores": SCORES, "weights": WEIGHTS, "expert_indices": INDICES}
    trace = Trace(
        model="tiny",
        revision="abc",
        precision="float32",
        text="\u2028 cat\U0001f600",
        tokens=(TOKEN,),
        tensors={names[key]: NamedArray(axes[key], data) for key, data in arrays.items()},
        heads=(3,),
        timings={"forward": 1.23456},
    )
    ranks = Analysis(
        arrays={"ids": NamedArray(("query", "rank"), np.array([[1, 2]], dtype=np.int64))},
        beside={"texts": [["a", "b"]]},
    )
    return Answer(id="id", trace=trace, analyses={"next_token": ranks})


def test_json_has_every_member():
    body = json.loads(encode(answer_with(scores=MASKED), Form()))
    assert body == {
        "id": "id",
        "model": "tiny",
        "revision": "abc",
        "text": "\u2028 cat\U0001f600",
        "tokens": [
            {"id": 5, "text": TOKEN.text, "start": 0, "end": 5, "word": 0, "is_special": False}
        ],
        "precision": "float32",
        "target": None,
        "target_tokens": None,
        "heads": [3],
        "timings": {"forward_ms": 1.235},
        "tensors": {
            SCORES: {
                "axes": ["head", "query", "key"],
                "shape": [1, 2, 2],
                "dtype": "float32",
                "data": [[[0.1, None], [2.0, -3.5]]],
            }
        },
        "analyses": {
            "next_token": {
                "ids": {
                    "axes": ["query", "rank"],
                    "shape": [1, 2],
                    "dtype": "int32",
                    "data": [[1, 2]],
                },
                "texts": [["a", "b"]],
            }
        },
    }


def test_json_numbers_are_the_exact_float32(from_json):
    numbers = np.random.default_rng(0).random((1, 50, 50), dtype=np.float32)
    body = json.loads(encode(answer_with(weights=numbers), Form()))
    np.testing.assert_array_equal(from_json(body)[WEIGHTS], numbers)


def test_safetensors_keeps_masked_scores_as_they_are(from_safetensors):
    arrays, metadata = from_safetensors(encode(answer_with(scores=MASKED), FILE))
    np.testing.assert_array_equal(arrays[SCORES], MASKED)
    assert metadata["axes"] == {
        SCORES: ["head", "query", "key"],
        "analyses.next_token.ids": ["query", "rank"],
    }
    assert metadata["tokens"][0]["text"] == TOKEN.text
    assert metadata["analyses"] == {"next_token": {"texts": [["a", "b"]]}}


def test_a_view_of_an_array_is_sent_as_it_reads(from_safetensors, from_json):
    view = np.arange(12, dtype=np.float32).reshape(1, 4, 3).transpose(0, 2, 1)
    arrays, _ = from_safetensors(encode(answer_with(weights=view), FILE))
    np.testing.assert_array_equal(arrays[WEIGHTS], view)
    body = json.loads(encode(answer_with(weights=view), Form()))
    np.testing.assert_array_equal(from_json(body)[WEIGHTS], view)


def test_integers_are_int32(from_safetensors):
    indices = np.array([[7, 0]], dtype=np.int64)
    answer = answer_with(expert_indices=indices)
    arrays, _ = from_safetensors(encode(answer, SMALL_FILE))
    assert arrays[INDICES].dtype == np.int32
    np.testing.assert_array_equal(arrays[INDICES], indices)


def test_uint16_reaches_both_ends_and_rounds_to_the_nearest():
    weights = np.array([[[0, 1], [0.5, 1 / 3]]], dtype=np.float32)
    found = json.loads(encode(answer_with(weights=weights), Form(dtype="uint16")))["tensors"]
    assert found[WEIGHTS]["data"] == [[[0, 65535], [32768, 21845]]]
    assert found[WEIGHTS]["scale"] == 1 / 65535


def test_uint16_leaves_what_is_not_between_zero_and_one(from_safetensors):
    arrays, metadata = from_safetensors(encode(answer_with(scores=MASKED), SMALL_FILE))
    assert arrays[SCORES].dtype == np.float32
    assert metadata["scale"] == {}


@pytest.mark.parametrize("media_type", [JSON, SAFETENSORS])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize(
    ("site", "bad"), [("scores", np.nan), ("scores", np.inf), ("weights", -np.inf)]
)
def test_a_number_that_is_none_is_never_sent(site, bad, dtype, media_type):
    data = np.array([[[0.5, bad]]], dtype=np.float32)
    with pytest.raises(Problem, match=rf"{site} holds -?(nan|inf)"):
        encode(answer_with(**{site: data}), Form(media_type=media_type, dtype=dtype))
