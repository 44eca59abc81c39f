"""Parts of speech by rules."""

import pytest

from headlight.model.atlas.tags import NAMES, TAGS, english, french, kinds_at, tag_of

SENTENCE = """
The DET, old ADJ, king NOUN, quickly ADV, gave VERB, him PRON, two NUM, houses NOUN, but CCONJ,
Alice PROPN, was AUX, walking VERB, . PUNCT
"""


def test_a_sentence_has_the_tags_of_its_words():
    words, tags = zip(*(pair.split() for pair in SENTENCE.split(",")), strict=True)
    assert english(words) == list(tags)


def test_a_capital_at_the_beginning_is_no_name():
    assert english(["Houses", "fell", ".", "Dogs", "ran"])[::3] == ["NOUN", "NOUN"]


def test_french_has_its_own_closed_classes():
    words = ["Il", "ne", "mange", "pas", "la", "pomme", "avec", "moi", "."]
    assert french(words) == ["PRON", "PART", "VERB", "PART", "DET", "NOUN", "ADP", "PRON", "PUNCT"]


def test_plain_names_and_tags_are_known_in_any_case():
    assert tag_of("Pronoun") == tag_of("pron") == "PRON"
    assert {tag_of(name) for name in NAMES} <= set(TAGS)
    with pytest.raises(ValueError, match="no part of speech 'thing'; there are adjective"):
        tag_of("thing")


def test_the_words_of_an_example_are_named_as_a_search_takes_them():
    text = "The king’s “dog” saw it 👍, then it ran."
    assert kinds_at(text, [text.index(" it"), text.index("king"), text.index("dog")]) == [
        "pronoun",
        "noun",
        "noun",
    ]
    assert kinds_at(text, [text.index(","), len(text)]) == ["punctuation", ""]
    assert kinds_at("although", [3]) == ["although"]
