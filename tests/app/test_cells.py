"""The widget: the state is one address, and the kernel answers the calls of the page."""

import gzip
import json

import pytest

pytest.importorskip("anywidget")
cells = pytest.importorskip("headlight.cells")


@pytest.fixture
def w(monkeypatch):
    """Return a widget, and note what it sends to the page."""
    widget = cells.widget("stories", "“The cat’s”")
    sent = []
    monkeypatch.setattr(widget, "send", lambda said, buffers: sent.append((said, *buffers)))
    widget.sent = sent
    return widget


def test_state_and_address_are_one(w):
    assert (w.text, w.head, w.edits) == ("“The cat’s”", None, [])
    w.layer, w.head, w.query = 2, 1, 3
    w.edits = [{"kind": "heads_off", "heads": [4], "layer": 3}]
    assert w.address.endswith("&model=stories&layer=2&head=1&query=3&off=head+decoder+3+4")
    w.address = "#text=Once+upon&model=stories&query=1&off=head+decoder+0+2"
    assert (w.text, w.head, w.query) == ("Once upon", None, 1)
    assert w.edits == [{"kind": "heads_off", "heads": [2], "layer": 0, "where": "decoder"}]
    w.edits = []
    assert "off" not in w.address
    with pytest.raises(ValueError, match="more than the page shows; set one head"):
        w.edits = [{"kind": "set", "site": "logits"}]


def test_the_kernel_answers_the_page_and_its_problems(w):
    w._answer(w, {"id": "1", "path": "/", "body": None, "accept": ""}, [])
    w._answer(w, {"id": "2", "path": "/api/v1/limits", "body": None, "accept": ""}, [])
    body = {"text": "a", "model": "gpt"}
    w._answer(w, {"id": "3", "path": "/api/v1/trace", "body": body, "accept": ""}, [])
    (_, page), (_, limits), (refused, _) = w.sent
    assert b"openCell(frameElement.headlight)" in gzip.decompress(page)
    assert "max_characters" in json.loads(limits)
    assert refused == {"id": "3", "status": 404, "type": "application/problem+json"}


def test_the_next_tokens_are_those_of_the_edited_pass(w):
    before = w.next
    w.edits = [{"kind": "heads_off", "heads": [1], "layer": 3}]
    assert len(before) == 5
    assert w.next != before
    w.text = ""
    with pytest.raises(ValueError, match="text"):
        assert w.next


def test_a_model_in_memory_is_the_one_that_is_asked():
    from headlight import load, widget

    model = load("stories-small")
    assert widget(model, "The dog").next
    registry = cells.kernel().app.state.services.registry
    assert registry.checkpoint("stories-small") is model


def test_the_picture_for_a_notebook_without_a_kernel_holds_no_markup_of_a_text(w):
    w.says, w.still = "“<script>” said the cat", 'data:image/svg+xml,"><script>'
    assert "<script>" not in w._picture.data
    assert "“&lt;script&gt;” said the cat" in w._picture.data
