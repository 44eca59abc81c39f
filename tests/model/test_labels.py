"""Labels show what a token is, and nothing else."""

import pytest

from headlight.model.labels import MAX_LABELS, label_of, ticks_of


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (" cat", "cat"),
        ("  ", "··"),
        ("<b>", "&lt;b&gt;"),
        ("</s>", "&lt;/s&gt;"),
        ("a&b", "a&amp;b"),
        ("a\tb", "a⇥b"),
        ("\x07", "␇"),
        ("a\u202eb", "a‹U+202E›b"),
        ("\u200b", "‹U+200B›"),
        ("مرحبا", "\u2068مرحبا\u2069"),
        ("👨\u200d👩", "👨\u200d👩"),
        ("x" * 40, "x" * 11 + "…"),
        ("2024-01-01", "2024-01-01"),
    ],
)
def test_a_label_is_what_a_person_can_read(text, label):
    assert label_of(text) == label


def test_of_many_labels_some_are_shown():
    assert ticks_of(["a", "a"]) == ([0, 1], ["a", "a"])
    places, texts = ticks_of([str(place) for place in range(256)])
    assert len(places) <= MAX_LABELS
    assert texts[1] == str(places[1]) == "8"
