"""The first screen, and what the page does on its own until somebody chooses."""

import re

import pytest
from playwright.sync_api import expect

SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries())
      if (!hadRecentInput) window.shifted += value;
  }).observe({ type: 'layout-shift' });
}"""
REPEATED = "The tall man met Mary Brown at the gate. In the evening the man called Mary"


def top_of(reader, selector):
    return reader.page.locator(selector).first.bounding_box()["y"]


def test_at_a_desk_map_and_drawing_are_on_the_first_screen(visit):
    reader = visit(width=1440, height=900)
    reader.open()
    assert top_of(reader, "#map") < 220
    assert top_of(reader, ".view:not([hidden]) .plot") < 220
    assert reader.page.locator("#text").bounding_box()["height"] < 45
    row = reader.view.locator(".plot-mark.is-chosen").bounding_box()
    assert row["y"] + row["height"] < 900
    insight = reader.page.locator("#insight")
    expect(insight).to_be_visible()
    assert "induction head" in insight.text_content()


def test_on_a_phone_a_drawing_is_on_the_first_screen_and_the_map_in_sight(visit):
    reader = visit(width=390, height=844, has_touch=True)
    reader.open()
    plot = reader.view.locator(".plot").bounding_box()
    bar = reader.page.locator("#map").bounding_box()
    assert bar["y"] - plot["y"] > 150
    assert bar["y"] + bar["height"] <= 844
    reader.page.mouse.wheel(0, 900)
    expect(reader.page.locator("#map")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_jumps_over_twenty_keystrokes(visit, width):
    reader = visit(width=width)
    reader.open()
    reader.page.evaluate(SHIFTS)
    reader.page.focus("#text")
    reader.page.keyboard.press("End")
    for letter in " the old grey river “":
        reader.page.keyboard.type(letter)
        reader.page.wait_for_timeout(300)
    reader.wait_until_drawn()
    badge = reader.page.locator("#reads")
    assert badge.text_content() == 'reads “ as "'
    if width > 1000:
        ends = reader.page.locator("#examples").bounding_box()
        assert badge.bounding_box()["x"] >= ends["x"] + ends["width"]
    assert reader.page.evaluate("window.shifted") <= (0 if width > 1000 else 0.001)


def test_each_text_of_ones_own_opens_a_telling_head_until_one_is_chosen(visit):
    reader = visit()
    reader.open()
    reader.write(REPEATED)
    first = reader.chosen_head
    assert "<s>" not in reader.page.locator("#insight").text_content()
    reader.page.locator(".heads-cell[aria-label^='Layer 0, head 1']").click()
    reader.write("The old king gave his “golden” ring to the girl’s mother.")
    assert reader.chosen_head == "Layer 0, head 1"
    assert first != "Layer 0, head 1"


def test_another_model_brings_its_own_example_but_an_edited_text_stays(visit):
    reader = visit()
    reader.open()
    before = reader.page.input_value("#text")
    with reader.reading_again():
        reader.page.select_option("#model", "fill")
    assert reader.page.input_value("#text") != before
    assert "[MASK]" in reader.page.input_value("#text")
    edited = "The cat [MASK] on the mat."
    reader.write(edited)
    with reader.reading_again():
        reader.page.select_option("#model", "stories")
    assert reader.page.input_value("#text") == edited
    assert "no masks" in reader.page.locator("#text-note").text_content()


def test_keys_walk_through_heads_and_layers_and_one_lists_them(reader):
    reader.open(text="The fox saw the hen.", layer=1, head=5)
    page = reader.page
    page.keyboard.press("l")
    reader.wait_until_drawn()
    assert reader.chosen_head == "Layer 1, head 0"
    page.keyboard.press("k")
    reader.wait_until_drawn()
    assert reader.chosen_head == "Layer 0, head 0"
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    for key in ("h", "Shift + Enter", "+", "Esc"):
        expect(
            dialog.locator("kbd", has_text=re.compile(rf"^{re.escape(key)}$")).first
        ).to_be_visible()
    dialog.get_by_label("Letters act as keys").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.keyboard.press("j")
    reader.wait_until_drawn()
    assert reader.chosen_head == "Layer 0, head 0"
    page.focus("#text")
    page.keyboard.press("End")
    page.keyboard.type("?")
    assert page.input_value("#text").endswith("?")


def test_a_button_that_changes_the_view_brings_it_into_sight(visit):
    reader = visit(width=390, height=844)
    reader.open(text="The fox saw the hen.", layer=0, head=0)
    button = reader.view.get_by_role("button", name="Why 0")
    button.scroll_into_view_if_needed()
    button.click()
    reader.wait_until_drawn()
    heading = reader.page.locator("#title-why")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()
