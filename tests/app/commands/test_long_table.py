"""A trace as a table with a line for each number."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from app.client import Analysis, NamedArray, Trace
from app.commands.long_table import text_of

WEIGHTS = NamedArray(("head", "query", "key"), np.array([[[1, 0], [0.1, 0.9]]], dtype=np.float32))


@pytest.fixture
def trace():
    return Trace(
        id="1",
        model="any",
        revision="1",
        precision="float32",
        text="a",
        tokens=(),
        tensors={"a.weights": WEIGHTS},
    )


def rows_of(trace):
    return list(csv.DictReader("".join(text_of(trace)).splitlines()))


def test_every_number_has_a_line_with_its_place(trace):
    assert "".join(text_of(trace)) == (
        "site,head,query,key,value\n"
        "a.weights,0,0,0,1.0\n"
        "a.weights,0,0,1,0.0\n"
        "a.weights,0,1,0,0.1\n"
        "a.weights,0,1,1,0.9\n"
    )


def test_heads_keep_their_numbers(trace):
    assert "a.weights,7,1,1,0.9\n" in "".join(text_of(replace(trace, heads=(7,))))


def test_an_axis_that_an_array_lacks_is_empty(trace):
    scores = NamedArray(("expert", "query"), np.array([[-np.inf]], dtype=np.float32))
    ids = Analysis(arrays={"ids": NamedArray(("query", "rank"), np.array([[5, 6]]))}, beside={})
    entropy = Analysis(arrays={"all": NamedArray((), np.array(0.5))}, beside={})
    found = replace(
        trace,
        tensors={"logits": scores, "a.weights": WEIGHTS},
        analyses={"next_token": ids, "routing": entropy},
    )
    rows = rows_of(found)
    assert list(rows[0]) == ["site", "head", "query", "key", "expert", "rank", "value"]
    assert rows[0] == {
        "site": "logits",
        "head": "",
        "query": "0",
        "key": "",
        "expert": "0",
        "rank": "",
        "value": "-inf",
    }
    assert [row["value"] for row in rows if row["rank"]] == ["5", "6"]
    assert rows[-1]["site"] == "analyses.routing.all"
    assert rows[-1]["value"] == "0.5"


def test_every_number_is_told_exactly(trace):
    numbers = np.random.default_rng(0).random((1, 3, 3), dtype=np.float32)
    array = NamedArray(WEIGHTS.axes, numbers)
    rows = rows_of(replace(trace, tensors={"a.weights": array}))
    told = np.array([np.float32(row["value"]) for row in rows])
    np.testing.assert_array_equal(told, numbers.ravel())
