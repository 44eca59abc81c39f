"""A trace is plain data that names its axes."""

import re

import numpy as np
import pytest

from headlight.model.trace import NamedArray, Trace


def test_an_array_has_a_name_for_every_axis():
    array = NamedArray(("query", "key"), np.zeros((2, 3)))
    assert array.axes == ("query", "key")
    message = "an array of shape (2, 3) cannot have axes ('query',)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        NamedArray(("query",), np.zeros((2, 3)))


def test_a_trace_gives_its_arrays_by_site():
    site, array = "logits", NamedArray(("query", "vocab"), np.zeros((1, 2)))
    trace = Trace(
        model="any", revision="1", precision="float32", text="a", tokens=(), tensors={site: array}
    )
    assert trace[site] is array.data
    assert list(trace) == [site]
    assert site in trace
    assert "scores" not in trace
    with pytest.raises(KeyError, match="lacks 'scores'; it holds logits"):
        trace["scores"]


def test_a_trace_is_printed_as_one_line_for_each_site():
    weights = NamedArray(("head", "query", "key"), np.zeros((2, 3, 3), np.float32))
    tensors = {"a.weights": weights, "b.indices": NamedArray(("query",), np.zeros(3, np.int32))}
    trace = Trace(
        model="any", revision="1", precision="float32", text="a" * 999, tokens=(), tensors=tensors
    )
    head, *lines = repr(trace).splitlines()
    assert len(head) < 120
    assert lines == ["  a.weights  head=2 query=3 key=3  float32", "  b.indices  query=3  int32"]
    assert repr(weights) == "NamedArray(head=2 query=3 key=3, float32)"
