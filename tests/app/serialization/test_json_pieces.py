"""Numbers written in pieces are the numbers, and no piece is large."""

import json

import numpy as np
import orjson
import pytest

from headlight.serialization.json_pieces import PIECE_CELLS, json_array, json_object, json_value

SHAPES = [
    (0,),
    (3,),
    (0, 4),
    (3, 0, 4),
    (2, 3),
    (PIECE_CELLS,),
    (2 * PIECE_CELLS + 1,),
    (PIECE_CELLS + 1, 1),
    (1, PIECE_CELLS + 1),
    (3, 2, PIECE_CELLS // 2 + 1),
    (5, 130, 130),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint16])
def test_pieces_make_the_nested_lists(shape, dtype):
    data = (1000 * np.random.default_rng(0).random(shape)).astype(dtype)
    pieces = list(json_array(data))
    assert b"".join(pieces) == orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)
    assert max(piece.count(b",") for piece in pieces) <= PIECE_CELLS


def test_minus_infinity_is_null():
    assert b"".join(json_array(np.array([1.5, -np.inf], dtype=np.float32))) == b"[1.5,null]"


def test_objects_nest_and_names_are_escaped():
    inner = json_object([("a", json_value([1])), ('"<b>', json_value(None))])
    assert json.loads(b"".join(json_object([("x", inner), ("y", json_value("é"))]))) == {
        "x": {"a": [1], '"<b>': None},
        "y": "é",
    }
    assert b"".join(json_object([])) == b"{}"
