"""A trace as a table with a line for each number."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from headlight.client import Analysis, NamedArray, Trace
from headlight.commands.output import csv_lines
from headlight.model.trace import Token

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
    return list(csv.DictReader(io.StringIO("".join(csv_lines(trace)), newline="")))


def test_every_number_has_a_line_with_its_indices(trace):
    assert "".join(csv_lines(trace)) == (
        "site,head,query,key,value\n"
        "a.weights,0,0,0,1.0\n"
        "a.weights,0,0,1,0.0\n"
        "a.weights,0,1,0,0.1\n"
        "a.weights,0,1,1,0.9\n"
    )


def test_heads_keep_their_numbers(trace):
    assert "a.weights,7,1,1,0.9\n" in "".join(csv_lines(replace(trace, heads=(7,))))


def test_an_axis_that_an_array_lacks_is_empty(trace):
    scores = NamedArray(("expert", "query"), np.array([[-np.inf]], dtype=np.float32))
    ids = Analysis(arrays={"ids": NamedArray(("query", "rank"), np.array([[5, 6]]))}, metadata={})
    entropy = Analysis(arrays={"all": NamedArray((), np.array(0.5))}, metadata={})
    changed = replace(
        trace,
        tensors={"logits": scores, "a.weights": WEIGHTS},
        analyses={"next_token": ids, "routing": entropy},
    )
    rows = rows_of(changed)
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


def tokens(*texts):
    return tuple(
        Token(id=at, text=text, start=0, end=0, word=at, is_special=False)
        for at, text in enumerate(texts)
    )


HOSTILE = ' say "hi",\r\n'


def test_an_index_of_a_token_has_its_text(trace):
    rows = rows_of(replace(trace, tokens=tokens(HOSTILE, "مرحبا 🦊")))
    assert list(rows[0])[2:] == ["query", "query_token", "key", "key_token", "value"]
    assert [row["key_token"] for row in rows] == [HOSTILE, "مرحبا 🦊"] * 2
    assert rows[2]["query_token"] == "مرحبا 🦊"


def test_cross_attention_has_target_rows_and_source_columns(trace):
    cross = NamedArray(("head", "query", "key"), np.ones((1, 1, 2)))
    stream = NamedArray(("query", "d_model"), np.ones((2, 1)))
    pair = replace(
        trace,
        tokens=tokens("a", "b"),
        target="c",
        target_tokens=tokens("c"),
        tensors={
            "decoder.layers.0.cross_attention.weights": cross,
            "encoder.layers.0.residual.after": stream,
        },
    )
    rows = [(row["query_token"], row["key_token"]) for row in rows_of(pair)]
    assert rows == [("c", "a"), ("c", "b"), ("a", ""), ("b", "")]


def test_a_prediction_has_the_text_of_its_token(trace):
    axes = ("query", "rank")
    likely = Analysis(
        arrays={
            "ids": NamedArray(axes, np.array([[5, 6], [7, 8]])),
            "probabilities": NamedArray(axes, np.array([[0.5, 0.25], [0.75, 0.125]])),
        },
        metadata={"texts": [[" cat", ","], ["\n", '"']]},
    )
    rows = rows_of(replace(trace, tokens=tokens("a", "b"), analyses={"next_token": likely}))
    assert {row["token"] for row in rows if row["site"] == "a.weights"} == {""}
    predictions = [
        (row["query_token"], row["token"], row["value"])
        for row in rows
        if row["site"] == "analyses.next_token.probabilities"
    ]
    assert predictions == [
        ("a", " cat", "0.5"),
        ("a", ",", "0.25"),
        ("b", "\n", "0.75"),
        ("b", '"', "0.125"),
    ]
    assert rows[-5]["token"] == '"'
    assert rows[-5]["value"] == "8"


FORMULAS = ["=1+1", "+x", "-", "@SUM(A1)", "\t=1", "\r=1", "-0x1"]


@pytest.mark.parametrize("text", [*FORMULAS, "-0.5", "+3", " =1", "a-b", ""])
def test_a_text_is_never_a_formula_and_can_be_had_back(trace, text):
    rows = rows_of(replace(trace, tokens=tokens(text, "b")))
    cell = rows[0]["query_token"]
    assert cell.removeprefix("\t") == text
    assert cell.startswith("\t") == (text in FORMULAS)
