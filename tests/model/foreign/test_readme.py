"""The README of a stranger's folder becomes a card that is short and harmless."""

import pytest

from headlight.model.card import read_card, write_card
from headlight.model.foreign.readme import MAX_CHARACTERS, NO_LICENCE, plain_markdown, readme_card


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


def test_a_link_out_of_the_folder_is_not_read(folder, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (folder / "README.md").symlink_to(tmp_path / "secret")
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


@pytest.mark.parametrize("text", ["<a" * 500_000, "![" * 500_000, "<!--" * 200_000, ">" * 500_000])
@pytest.mark.timeout(20)
def test_a_hostile_text_is_short_and_read_to_its_end(text):
    assert len(plain_markdown(text)) < MAX_CHARACTERS + 100


def test_the_card_is_read_back_as_it_was_written(folder):
    card = card_of(folder, "---\nlicense: mit\n---\nText with --- and `code`.\n\n---\n\nmore")
    write_card(folder / "CARD.md", card)
    assert read_card(folder / "CARD.md") == card
