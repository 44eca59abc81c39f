"""A captured array as a heatmap that Plotly takes, by itself in a notebook or by name."""

import base64
import json
import re
import struct
import zlib
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from headlight.model.plotting import MOST_TOLD, PLOTLY, UndrawableArray
from headlight.model.static_svg import LINE
from headlight.model.trace import NamedArray, Token, Trace

WEIGHTS = "decoder.layers.0.self_attention.weights"
SCORES = "decoder.layers.0.self_attention.scores"
CROSS = "decoder.layers.0.cross_attention.weights"


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
            "decoder.embedding.positional": NamedArray(("position", "d_model"), -np.ones((3, 4))),
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


def test_equal_tokens_stay_apart_and_no_token_is_markup(trace):
    figure = trace.figure()
    assert figure.layout.xaxis.tickvals == (0, 1, 2)
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;", "cat", "cat")
    assert "<b>" not in figure.to_json().replace("\\u003c", "<")
    assert figure.data[0].hovertext[1][0] == "cat → &lt;b&gt;<br>0"
    assert figure.data[0].hovertemplate is None


def test_what_has_a_sign_has_zero_in_the_middle(trace):
    (drawn,) = trace.figure(SCORES).data
    assert (drawn.zmin, drawn.zmax) == (-2, 2)
    assert drawn.z[0][1] is None
    (drawn,) = trace.figure("decoder.embedding.positional").data
    assert (drawn.zmin, drawn.zmax) == (-1, 1)


def test_heads_go_by_their_numbers(trace):
    some = replace(trace, heads=(5, 2), tensors={WEIGHTS: trace.tensors[WEIGHTS]})
    assert some.figure(head=2).data[0].z[1][0] == 0.5
    with pytest.raises(UndrawableArray, match="there is no head 0; the heads are 5, 2"):
        some.figure(head=0)


def test_cross_attention_has_the_targets_tokens_as_rows(trace):
    pair = replace(
        trace, target_tokens=tokens("le", "chat"), tensors={CROSS: by_head(np.ones((2, 3)) / 3)}
    )
    layout = pair.figure().layout
    assert layout.yaxis.ticktext == ("le", "chat")
    assert layout.xaxis.ticktext == ("&lt;b&gt;", "cat", "cat")


def test_what_is_no_matrix_is_said(trace):
    with pytest.raises(UndrawableArray, match="wide is no matrix: its axes are query"):
        trace.figure("wide")
    with pytest.raises(UndrawableArray, match=r"holds no 'b'; it holds decoder\.layers"):
        trace.figure("b")
    with pytest.raises(UndrawableArray, match="positional has no heads, but position d_model"):
        trace.figure("decoder.embedding.positional", head=1)
    with pytest.raises(UndrawableArray, match="the trace holds no matrix"):
        replace(trace, tensors={}).figure()


def test_of_a_large_array_no_number_is_told(trace):
    size = int(MOST_TOLD**0.5) + 1
    large = replace(trace, tensors={"logits": NamedArray(("a", "b"), np.zeros((size, size)))})
    (drawn,) = large.figure().data
    assert drawn.hovertext is None
    assert len(large.figure().layout.xaxis.tickvals) < 50


def test_a_notebook_shows_a_trace_as_plotly_or_as_a_picture(trace):
    bundle = trace._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"text/plain", "text/html", PLOTLY}
    assert json.loads(json.dumps(bundle[PLOTLY])) == trace.drawing(WEIGHTS)
    assert bundle["text/plain"].startswith("Trace of '<b> cat cat' by any\n")
    assert f"{WEIGHTS}  head=2 query=3 key=3" in bundle["text/plain"]
    assert "<script" not in bundle["text/html"]
    assert "&lt;b&gt; cat cat" in bundle["text/html"]


def svg_of(trace):
    found = re.search(r"svg\+xml;base64,([^\"]+)", trace._repr_mimebundle_()["text/html"])
    assert found is not None
    return base64.b64decode(found[1]).decode()


def test_the_picture_has_tokens_axes_a_scale_and_a_caption(trace):
    drawn = ElementTree.fromstring(svg_of(trace))
    told = ["".join(text.itertext()) for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert told[:6] == ["<b>", "cat", "cat"] * 2
    assert told[6:] == [
        "key: attended to →",
        "← query: attends",
        *["0", "0.25", "0.5", "0.75", "1"],
    ]
    page = trace._repr_mimebundle_()["text/html"]
    assert f"<b>{WEIGHTS}, head 0</b><br>any: &lt;b&gt; cat cat</figcaption>" in page
    assert page.index("<details>") < page.index(SCORES)


def test_labels_of_many_tokens_stand_clear_of_one_another(trace):
    size = 100
    many = replace(
        trace, tokens=tokens(*map(str, range(size))), tensors={WEIGHTS: by_head(np.eye(size))}
    )
    places = re.findall(r'y="([\d.]+)" text-anchor="end"', svg_of(many))
    assert 10 < len(places) < size
    assert min(np.diff(np.array(places, dtype=float))) >= LINE - 0.1


def test_a_notebook_keeps_no_numbers_of_what_is_large(trace):
    size = int(MOST_TOLD**0.5) + 1
    large = replace(trace, tensors={WEIGHTS: by_head(np.eye(size))})
    assert set(large._repr_mimebundle_()) == {"text/plain", "text/html"}
    logits = NamedArray(("query", "vocab"), np.zeros((3, 9)))
    bundle = replace(trace, tensors={"logits": logits})._repr_mimebundle_()
    assert set(bundle) == {"text/plain"}
    assert "logits  query=3 vocab=9" in bundle["text/plain"]
    positions = trace.tensors["decoder.embedding.positional"]
    both = replace(trace, tensors={"logits": logits, "decoder.embedding.positional": positions})
    assert "positional" in both._repr_mimebundle_()["text/html"]


def test_the_picture_is_the_map(trace):
    found = re.search(r"png;base64,([^\"]+)", svg_of(trace))
    assert found is not None
    picture = base64.b64decode(found[1])
    assert struct.unpack(">II", picture[16:24]) == (3, 3)
    start = picture.index(b"IDAT") + 4
    lines = zlib.decompressobj().decompress(picture[start:])
    assert [list(lines[at + 1 : at + 4]) for at in (0, 4, 8)] == [
        [255, 0, 0],
        [1, 255, 0],
        [1, 1, 255],
    ]


def test_a_trace_without_a_matrix_is_shown_in_words(trace):
    assert set(replace(trace, tensors={})._repr_mimebundle_()) == {"text/plain"}
