"""A safetensors answer is read back into the arrays that were captured."""

import json

import numpy as np
import pytest
import safetensors.numpy

from headlight.client import UnreadableAnswer
from headlight.client.files import read_file

WHOLE = np.array([[[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]], dtype=np.float32)
LOWER = np.tril_indices(3)


def file_of(array, **said):
    metadata = {"axes": {"a": ["head", "query", "key"]}, "text": "the cat", **said}
    return safetensors.numpy.save(
        {"a": array}, {name: json.dumps(value) for name, value in metadata.items()}
    )


def test_members_are_all_that_describes_no_array():
    file = read_file(file_of(WHOLE))
    assert file.members == {"text": "the cat"}
    assert file.arrays["a"].axes == ("head", "query", "key")
    np.testing.assert_array_equal(file.arrays["a"].data, WHOLE)


def test_a_scale_is_applied():
    sent = np.rint(WHOLE * 65535).astype(np.uint16)
    found = read_file(file_of(sent, scale={"a": 1 / 65535})).arrays["a"].data
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, WHOLE, atol=8e-6)


@pytest.mark.parametrize("fill", [0, None], ids=["weights", "scores"])
def test_a_triangle_is_whole_again(fill):
    packed = {"packed": "lower-triangle", "shape": [1, 3, 3], "fill": fill}
    found = read_file(file_of(WHOLE[:, *LOWER], packed={"a": packed})).arrays["a"].data
    np.testing.assert_array_equal(found[:, *LOWER], WHOLE[:, *LOWER])
    above = found[:, *np.triu_indices(3, 1)]
    assert (above == (-np.inf if fill is None else 0)).all()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no safetensors file of Headlight"),
        (b"<html>", "no safetensors file of Headlight"),
        (file_of(WHOLE)[:-4], "no safetensors file of Headlight"),
        (safetensors.numpy.save({"a": WHOLE}), "no safetensors file of Headlight: '__metadata__'"),
        (file_of(WHOLE, packed={"a": {"packed": "sparse"}}), "packed as 'sparse'; a newer client"),
    ],
    ids=["empty", "page", "cut", "foreign", "newer"],
)
def test_another_file_is_refused(content, reason):
    with pytest.raises(UnreadableAnswer, match=reason):
        read_file(content)
