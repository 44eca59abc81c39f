"""Causal arrays lose what everybody knows, and nothing else."""

import numpy as np
import pytest

from headlight.serialization.triangles import pack

AXES = ("head", "query", "key")


def causal(size, fill=0.0, heads=2):
    numbers = np.random.default_rng(size).random((heads, size, size), dtype=np.float32)
    return np.where(np.tri(size, dtype=bool), numbers, np.float32(fill))


def unpack(packed):
    full = np.full(packed.shape, packed.fill, packed.data.dtype)
    full[..., *np.tril_indices(packed.shape[-1])] = packed.data
    return full


@pytest.mark.parametrize("fill", [0.0, -np.inf])
@pytest.mark.parametrize("size", [2, 3, 17])
def test_a_causal_array_is_packed_row_by_row_and_unpacks_to_itself(size, fill):
    data = causal(size, fill)
    packed = pack(AXES, data)
    assert packed.data.shape == (2, size * (size + 1) // 2)
    assert packed.fill == fill
    np.testing.assert_array_equal(packed.data[0, :3], [data[0, 0, 0], *data[0, 1, :2]])
    np.testing.assert_array_equal(unpack(packed), data)


def test_an_array_that_looks_ahead_anywhere_is_sent_whole():
    data = causal(5)
    data[1, 2, 3] = 0.001
    assert pack(AXES, data) is None


def test_an_array_of_two_fills_is_sent_whole():
    data = causal(5)
    data[1] = causal(5, -np.inf)[1]
    assert pack(AXES, data) is None


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 1, 1)])
def test_rectangles_and_single_cells_are_sent_whole(shape):
    assert pack(AXES, np.zeros(shape, dtype=np.float32)) is None


def test_axes_of_another_kind_are_no_triangle():
    assert pack(("head", "query", "d_head"), causal(4)) is None
