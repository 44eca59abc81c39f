"""An example says where to look, and one that says it wrongly is refused."""

import pytest

from headlight.model.card import ModelCard, read_card, write_card
from headlight.model.example import Example, example_of

FULL = Example(text="The cat sat.", view="attention", where="cross", layer=0, head=2, query=3)


def test_an_example_comes_back_as_it_was_written(tmp_path):
    card = ModelCard(title="T", licence="L", examples={"A cat": FULL, "A dog": "The dog sat."})
    write_card(tmp_path / "CARD.md", card)
    assert read_card(tmp_path / "CARD.md") == card


def test_an_example_opens_what_it_names_and_nothing_else():
    assert FULL.opens == {"view": "attention", "where": "cross", "layer": 0, "head": 2, "query": 3}
    assert Example(text="a").opens == {}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"text": "a", "layers": 1}, "has the keys text, view, where, layer, head, .* not layers"),
        ({"text": "a", "layer": -1}, "layer is a whole number from 0 on, not -1"),
        ({"text": "a", "head": True}, "head is a whole number from 0 on, not True"),
        ({"text": "a", "query": "3"}, "query is a whole number from 0 on, not '3'"),
        ({"text": 5}, "text is a text, not 5"),
        ({"layer": 1}, "needs a text"),
    ],
)
def test_what_cannot_be_opened_is_refused(written, message):
    with pytest.raises(ValueError, match=message):
        example_of(written)


def test_a_card_with_a_wrong_example_is_named(tmp_path):
    path = tmp_path / "CARD.md"
    path.write_text("---\ntitle: T\nlicence: L\nexamples:\n  A: {text: a, layer: x}\n---\n")
    with pytest.raises(ValueError, match=r"CARD\.md: an example's layer is a whole number"):
        read_card(path)
