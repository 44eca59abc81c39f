"""Characters that the tokenizer spells in bytes."""

import pytest
from axe_playwright_python.sync_playwright import Axe

TEXT = "I saw 猫 and é"


@pytest.fixture
def shown(reader):
    reader.open(text=TEXT, layer=1, head=2)
    return reader


def test_the_bytes_of_a_character_share_one_outline_with_the_character(shown):
    groups = shown.page.locator(".character")
    assert groups.locator(".character-whole").all_text_contents() == ["猫", "é"]
    assert groups.nth(0).locator(".chip").all_text_contents() == ["e7", "8c", "ab"]
    assert groups.nth(1).locator(".chip").all_text_contents() == ["c3", "a9"]
    assert groups.first.evaluate("(group) => getComputedStyle(group).boxShadow") != "none"


def test_a_screen_reader_is_told_which_byte_of_which_character(shown):
    options = shown.page.get_by_role("option", name="of 猫")
    assert [option.get_attribute("aria-label") for option in options.all()] == [
        f"token {index}: byte {byte} of 3 of 猫" for byte, index in enumerate((4, 5, 6), start=1)
    ]


def test_the_axes_name_the_character_and_the_readout_says_which_byte(shown):
    rows = shown.view.locator(".ytick text").all_text_contents()
    assert rows[4:7] == ["猫 1/3", "猫 2/3", "猫 3/3"]
    shown.page.locator(".chip", has_text="8c").click()
    shown.wait_until_drawn()
    assert shown.readout.startswith("“猫” (byte 2 of 3) attends most to")
    assert shown.table()[6][0] == "猫 2/3"


def test_bytes_are_walked_and_chosen_like_any_token(shown):
    shown.page.locator(".chip", has_text="e7").click()
    for _ in range(3):
        shown.page.keyboard.press("ArrowRight")
    assert shown.page.locator(".chip[aria-selected=true]").text_content() == "·and"
    shown.page.keyboard.press("ArrowLeft")
    assert "query=6" in shown.fragment


def test_text_of_plain_letters_has_no_outlines(reader):
    reader.open(text="\\xe7 is what I typed")
    assert reader.page.locator(".character").count() == 0


def test_axe_finds_nothing_wrong_with_the_outlines(visit):
    reader = visit(bypass_csp=True)
    reader.open(text=TEXT)
    found = Axe().run(reader.page, context="#sentence").response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found] == []
