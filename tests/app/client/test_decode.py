"""Answers as they arrive: safetensors files, and streams of events that may break off."""

import json

import numpy as np
import pytest
import safetensors.numpy

from headlight.client import Ended, Unavailable, UnreadableAnswer
from headlight.client.decode import events_of, read_safetensors

WHOLE = np.array([[[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]], dtype=np.float32)
LOWER = np.tril_indices(3)
END = ["event: end", 'data: {"reason": "length", "n_tokens": 2, "text": "a b"}', ""]
ENDED = Ended(reason="length", n_tokens=2, text="a b")


def file_of(array, **members):
    metadata = {"axes": {"a": ["head", "query", "key"]}, "text": "the cat", **members}
    return safetensors.numpy.save(
        {"a": array}, {name: json.dumps(value) for name, value in metadata.items()}
    )


def test_members_are_all_metadata_that_does_not_describe_arrays():
    arrays, members = read_safetensors(file_of(WHOLE))
    assert members == {"text": "the cat"}
    assert arrays["a"].axes == ("head", "query", "key")
    np.testing.assert_array_equal(arrays["a"].data, WHOLE)


def test_a_scale_is_applied():
    sent = np.rint(WHOLE * 65535).astype(np.uint16)
    arrays, _ = read_safetensors(file_of(sent, scale={"a": 1 / 65535}))
    assert arrays["a"].data.dtype == np.float32
    np.testing.assert_allclose(arrays["a"].data, WHOLE, atol=8e-6)


@pytest.mark.parametrize("fill", [0, None], ids=["weights", "scores"])
def test_a_triangle_is_restored(fill):
    packed = {"packed": "lower-triangle", "shape": [1, 3, 3], "fill": fill}
    arrays, _ = read_safetensors(file_of(WHOLE[:, *LOWER], packed={"a": packed}))
    np.testing.assert_array_equal(arrays["a"].data[:, *LOWER], WHOLE[:, *LOWER])
    above = arrays["a"].data[:, *np.triu_indices(3, 1)]
    assert (above == (-np.inf if fill is None else 0)).all()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        file_of(WHOLE)[:-4],
        safetensors.numpy.save({"a": WHOLE}),
        file_of(WHOLE, packed={"a": {"packed": "sparse"}}),
    ],
    ids=["empty", "page", "cut", "foreign", "newer"],
)
def test_any_other_file_is_unreadable(content):
    with pytest.raises(UnreadableAnswer):
        read_safetensors(content)


def test_an_event_may_span_lines_and_comments_are_skipped():
    lines = [": keep-alive", "", "event: end", 'data: {"reason": "length",']
    lines += ['data: "n_tokens": 2, "text": "a b"}', "id: 7", ""]
    assert list(events_of(lines)) == [ENDED]


def test_members_of_a_newer_server_are_ignored():
    assert list(events_of([END[0], END[1].replace("}", ', "mood": 1}'), ""])) == [ENDED]


def test_an_error_event_is_raised():
    problem = '{"type": "urn:headlight:problem:worker-died", "status": 503, "detail": "it died"}'
    with pytest.raises(Unavailable) as raised:
        list(events_of(["event: error", f"data: {problem}", ""]))
    assert raised.value.kind == "worker-died"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        END[:2],
        ["event: end", "data: {", ""],
        ["event: token", "data: {}", ""],
        ["event: mood", "data: {}", ""],
        ["event: end", "data: []", ""],
        ["event: error", "data: []", ""],
    ],
)
def test_an_incomplete_or_unknown_stream_is_unreadable(lines):
    with pytest.raises(UnreadableAnswer):
        list(events_of(lines))
