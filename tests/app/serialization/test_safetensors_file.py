"""Files in pieces are what the library reads, and what it would write."""

import numpy as np
import pytest
import safetensors.numpy
from safetensors import safe_open

from headlight.serialization.safetensors_file import PIECE_BYTES, safetensors_pieces

RANDOM = np.random.default_rng(0)
ARRAYS = {
    "b.weights": RANDOM.integers(0, 65535, (3, 5), dtype=np.uint16),
    "a.scores": RANDOM.random((2, 3, 3), dtype=np.float32),
    "c.ids": RANDOM.integers(0, 9, (4,), dtype=np.int32),
    "nothing": np.zeros((0, 7), dtype=np.float32),
    "a.weights": RANDOM.integers(0, 65535, (1,), dtype=np.uint16),
}


def test_the_library_reads_every_array_and_what_goes_beside_them(tmp_path):
    path = tmp_path / "trace.safetensors"
    path.write_bytes(b"".join(safetensors_pieces(ARRAYS, {"text": '"é🦊'})))
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"text": '"é🦊'}
        assert set(file.keys()) == set(ARRAYS)
        for name, data in ARRAYS.items():
            found = file.get_tensor(name)
            assert found.dtype == data.dtype
            np.testing.assert_array_equal(found, data)


def test_the_bytes_are_those_that_the_library_writes():
    content = b"".join(safetensors_pieces(ARRAYS, {"text": "a"}))
    assert content == safetensors.numpy.save(ARRAYS, {"text": "a"})


@pytest.mark.parametrize("arrays", [{}, {"a": np.zeros((0,), dtype=np.float32)}])
def test_a_file_of_no_numbers_is_a_file(arrays):
    content = b"".join(safetensors_pieces(arrays, {}))
    assert safetensors.numpy.load(content).keys() == arrays.keys()


def test_no_piece_of_a_large_array_is_large():
    arrays = {"a": RANDOM.random(PIECE_BYTES, dtype=np.float32)}
    pieces = list(safetensors_pieces(arrays, {}))
    assert max(map(len, pieces)) == PIECE_BYTES
    np.testing.assert_array_equal(safetensors.numpy.load(b"".join(pieces))["a"], arrays["a"])
