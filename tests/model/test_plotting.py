"""A captured array as a heatmap, drawn by Plotly."""

from dataclasses import replace

import numpy as np
import pytest

from headlight.model.plotting import MAX_LABELS
from headlight.model.trace import NamedArray, Token, Trace

WEIGHTS = "decoder.layers.0.self_attention.weights"
SCORES = "decoder.layers.0.self_attention.scores"
CROSS = "decoder.layers.0.cross_attention.weights"
POSITIONAL = "decoder.embedding.positional"


def tokens(*texts):
    return tuple(
        Token(id=at, text=text, start=0, end=0, word=at, is_special=False)
        for at, text in enumerate(texts)
    )


def by_head(*matrices):
    return NamedArray(("head", "query", "key"), np.array(matrices, dtype=np.float32))


@pytest.fixture
def trace():
    eye, even = np.eye(3), np.tri(3) / np.arange(1, 4)[:, None]
    scores = np.where(np.tri(3) > 0, -2.0, -np.inf)
    return Trace(
        model="any",
        revision="1",
        precision="float32",
        text="<b> cat cat",
        tokens=tokens("<b>", " cat", " cat"),
        tensors={
            WEIGHTS: by_head(eye, even),
            SCORES: by_head(scores),
            POSITIONAL: NamedArray(("position", "d_model"), -np.ones((3, 4))),
            "wide": NamedArray(("query",), np.zeros(3)),
        },
    )


def test_rows_are_queries_and_columns_are_keys(trace):
    figure = trace.figure(WEIGHTS, head=1)
    (drawn,) = figure.data
    assert list(drawn.z[2]) == [pytest.approx(1 / 3)] * 3
    assert list(drawn.z[0]) == [1.0, None, None]
    assert figure.layout.title.text == f"{WEIGHTS}, head 1"
    assert figure.layout.yaxis.title.text == "query"
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.xaxis.title.text == "key"


def test_equal_tokens_are_not_merged_and_no_token_is_markup(trace):
    figure = trace.figure()
    assert figure.layout.xaxis.tickvals == (0, 1, 2)
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;", " cat", " cat")
    assert "<b>" not in figure.to_json().replace("\\u003c", "<")


def test_values_of_both_signs_have_zero_in_the_middle_of_the_scale(trace):
    (drawn,) = trace.figure(SCORES).data
    assert drawn.zmid == 0
    assert drawn.z[0][1] is None
    assert trace.figure(WEIGHTS).data[0].zmid is None


def test_cross_attention_has_the_targets_tokens_as_rows(trace):
    pair = replace(
        trace, target_tokens=tokens("le", "chat"), tensors={CROSS: by_head(np.ones((2, 3)) / 3)}
    )
    layout = pair.figure().layout
    assert layout.yaxis.ticktext == ("le", "chat")
    assert layout.xaxis.ticktext == ("&lt;b&gt;", " cat", " cat")


@pytest.mark.parametrize(
    ("site", "head"), [("wide", None), ("none", None), (POSITIONAL, 1), (WEIGHTS, 2)]
)
def test_an_array_that_cannot_be_drawn_is_an_error(trace, site, head):
    with pytest.raises(ValueError, match=r"the trace lacks|its axes are"):
        trace.figure(site, head)


def test_of_many_labels_some_are_shown(trace):
    many = {WEIGHTS: by_head(np.eye(65))}
    axis = replace(trace, tokens=tokens(*map(str, range(65))), tensors=many).figure().layout.xaxis
    assert axis.ticktext[:2] == ("0", "3")
    assert len(axis.tickvals) <= MAX_LABELS
