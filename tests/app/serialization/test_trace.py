"""A Trace becomes JSON or safetensors without losing a number."""

import json
from dataclasses import replace

import numpy as np
import orjson
import pytest
import safetensors.numpy

from headlight.analyses.analysis import Result
from headlight.model.trace import NamedArray, Token, Trace
from headlight.problems import Problem
from headlight.schemas import JSON, SAFETENSORS
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import (
    FILE_CHUNK_BYTES,
    JSON_CHUNK_ELEMENTS,
    Answer,
    _json_value,
    encode,
    json_array,
    safetensors_chunks,
)

FILE = ResponseFormat(media_type=SAFETENSORS)
SMALL_FILE = ResponseFormat(media_type=SAFETENSORS, dtype="uint16")
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
    ranks = Result(
        arrays={"ids": NamedArray(("query", "rank"), np.array([[1, 2]], dtype=np.int64))},
        metadata={"texts": [["a", "b"]]},
    )
    return Answer(id="id", trace=trace, analyses={"next_token": ranks})


def test_json_has_every_member():
    body = json.loads(encode(answer_with(scores=MASKED), ResponseFormat()))
    assert body == {
        "id": "id",
        "model": "tiny",
        "revision": "abc",
        "text": "\u2028 cat\U0001f600",
        "tokens": [
            {"id": 5, "text": TOKEN.text, "start": 0, "end": 5, "word": 0}
            | {"is_special": False, "role": None}
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


def test_the_digest_and_the_bytes_count_the_arrays_of_analyses():
    answer = answer_with(scores=MASKED)
    ids = NamedArray(("query", "rank"), np.array([[1, 3]], dtype=np.int64))
    only_ids = Result(arrays={"ids": ids}, metadata=answer.analyses["next_token"].metadata)
    changed, without = (replace(answer, analyses=each) for each in ({"next_token": only_ids}, {}))
    assert answer.digest == answer_with(scores=MASKED).digest
    assert len({each.digest for each in (answer, changed, without)}) == 3
    assert answer.n_bytes == without.n_bytes + ids.data.nbytes


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
    body = json.loads(encode(answer_with(weights=view), ResponseFormat()))
    np.testing.assert_array_equal(from_json(body)[WEIGHTS], view)


def test_integers_are_int32(from_safetensors):
    indices = np.array([[7, 0]], dtype=np.int64)
    answer = answer_with(expert_indices=indices)
    arrays, _ = from_safetensors(encode(answer, SMALL_FILE))
    assert arrays[INDICES].dtype == np.int32
    np.testing.assert_array_equal(arrays[INDICES], indices)


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
        encode(answer_with(**{site: data}), ResponseFormat(media_type=media_type, dtype=dtype))


SHAPES = [
    (0,),
    (3,),
    (0, 4),
    (3, 0, 4),
    (2, 3),
    (JSON_CHUNK_ELEMENTS,),
    (2 * JSON_CHUNK_ELEMENTS + 1,),
    (JSON_CHUNK_ELEMENTS + 1, 1),
    (1, JSON_CHUNK_ELEMENTS + 1),
    (3, 2, JSON_CHUNK_ELEMENTS // 2 + 1),
    (5, 130, 130),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint16])
def test_pieces_make_the_nested_lists(shape, dtype):
    data = (1000 * np.random.default_rng(0).random(shape)).astype(dtype)
    pieces = list(json_array(data))
    assert b"".join(pieces) == orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)
    assert max(piece.count(b",") for piece in pieces) <= JSON_CHUNK_ELEMENTS


def test_minus_infinity_is_null():
    assert b"".join(json_array(np.array([1.5, -np.inf], dtype=np.float32))) == b"[1.5,null]"


def test_objects_nest_and_names_are_escaped():
    document = {"x": {"a": [1], '"<b>': None, "c": np.arange(3)}, "y": "é", "z": {}}
    whole = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    assert b"".join(_json_value(document)) == whole


RANDOM = np.random.default_rng(0)
ARRAYS = {
    "b.weights": RANDOM.integers(0, 65535, (3, 5), dtype=np.uint16),
    "a.scores": RANDOM.random((2, 3, 3), dtype=np.float32),
    "c.ids": RANDOM.integers(0, 9, (4,), dtype=np.int32),
    "nothing": np.zeros((0, 7), dtype=np.float32),
    "a.weights": RANDOM.integers(0, 65535, (1,), dtype=np.uint16),
}


def test_the_bytes_are_those_that_the_library_writes():
    content = b"".join(safetensors_chunks(ARRAYS, {"text": "a"}))
    assert content == safetensors.numpy.save(ARRAYS, {"text": "a"})


def test_no_piece_of_a_large_array_is_large():
    arrays = {"a": RANDOM.random(FILE_CHUNK_BYTES, dtype=np.float32)}
    pieces = list(safetensors_chunks(arrays, {}))
    assert max(map(len, pieces)) == FILE_CHUNK_BYTES
    np.testing.assert_array_equal(safetensors.numpy.load(b"".join(pieces))["a"], arrays["a"])
