"""The README of a stranger's folder becomes a card that is short and harmless."""

import pytest

from headlight.model.foreign.readme import NO_LICENCE, plain_markdown, readme_card


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "mine"
    made.mkdir()
    return made


def card_of(folder, text):
    (folder / "README.md").write_text(text, encoding="utf-8")
    return readme_card(folder)


def test_licence_data_and_text_are_taken(folder):
    card = card_of(folder, "---\nlicense: mit\ndatasets: [a, b]\n---\n# Title\n\nText.")
    assert (card.title, card.licence, card.trained_on) == ("mine", "mit", ("a", "b"))
    assert card.prose == "# Title\n\nText."


@pytest.mark.parametrize(
    "head", ["license: [", "license: &a [*a]", "- a", "license: {a: b}", "[" * 900, "license: 2"]
)
def test_damaged_front_matter_costs_the_facts_and_not_the_text(folder, head):
    card = card_of(folder, f"---\n{head}\n---\nText.")
    assert card.prose == "Text."
    assert card.licence in (NO_LICENCE, "2")


def test_without_a_readme_the_card_has_a_title(folder):
    assert readme_card(folder).licence == NO_LICENCE
    (folder / "README.md").mkdir()
    assert readme_card(folder).prose == ""


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a <script>alert(1)</script> b", "a  b"),
        ("a <script>alert(1)", "a"),
        ("<!-- hidden -->a", "a"),
        ('<img src="x" onerror="y">a', "a"),
        ("![alt](https://example.org/a.png)", "alt"),
        ("a\x00\x1b[31m\u202eb", "a[31mb"),
        ("a < b and c > d", "a < b and c > d"),
    ],
)
def test_html_images_and_control_characters_go(text, plain):
    assert plain_markdown(text) == plain
