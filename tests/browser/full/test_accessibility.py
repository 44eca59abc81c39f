"""The page for those who see it differently, or use only the keyboard."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

TEXT = "The animal did not cross the street because it was too tired."


def test_the_first_stop_skips_to_the_drawing(reader):
    reader.open(text=TEXT)
    reader.page.keyboard.press("Tab")
    reader.page.keyboard.press("Enter")
    expect(reader.view.locator(".plot").first).to_be_focused()
    assert "text=The+animal" in reader.fragment, "the view is still in the address"


def test_axe_finds_nothing_wrong_in_the_dark_on_a_phone(visit, views, violations_of):
    reader = visit(width=390, color_scheme="dark", bypass_csp=True)
    assert violations_of(reader, views) == {}


@pytest.fixture
def forced(visit):
    reader = visit(forced_colors="active")
    reader.open(text=TEXT, layer=1, head=2)
    return reader


def style(locator, name):
    return locator.evaluate("(node, name) => getComputedStyle(node)[name]", name)


def test_with_forced_colours_lines_say_what_is_chosen(forced):
    page = forced.page
    assert style(page.locator(".heads-cell[aria-selected=true]"), "outlineStyle") == "solid"
    assert style(page.locator(".heads-cell[aria-selected=false]").first, "outlineStyle") == "none"
    lit = page.locator('#map .is-head[aria-current="true"]')
    assert style(lit, "outlineStyle") == "solid"
    assert style(page.locator('#map [aria-current="false"]').first, "outlineStyle") == "none"
    forced.view.locator(".plot").focus()
    page.keyboard.press("ArrowUp")
    assert style(forced.view.locator(".plot-mark.is-cell"), "outlineStyle") == "solid"


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_card_can_be_read_by_everybody(visit, width, theme):
    reader = visit(width=width, color_scheme=theme)
    page = reader.page
    page.goto(f"{reader.url}/models/stories/card")
    assert page.get_by_role("heading", level=2).first.is_visible()
    assert page.get_by_role("columnheader", name="figure").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert Axe().run(page).response["violations"] == []


def test_a_key_leads_to_the_drawing_and_rows_of_buttons_are_one_stop(reader):
    reader.open(text=TEXT)
    reader.page.keyboard.press("d")
    expect(reader.view.locator(".plot").first).to_be_focused()
    for row in ("#examples", "#view-list"):
        stops = reader.page.locator(f'{row} button:not([tabindex="-1"])')
        assert stops.count() == 1
    first = reader.page.locator("#view-list button").first
    first.focus()
    reader.page.keyboard.press("ArrowRight")
    expect(reader.page.locator("#view-list button").nth(1)).to_be_focused()


def test_axe_finds_nothing_wrong_with_the_description_of_the_api(visit):
    reader = visit(bypass_csp=True)
    reader.page.goto(f"{reader.url}/docs")
    reader.page.locator(".opblock").first.wait_for()
    assert Axe().run(reader.page).response["violations"] == []


def test_the_tokens_keep_their_place_while_one_types(visit):
    reader = visit(width=390)
    reader.open(text="the")
    before = reader.page.locator("#views").bounding_box()
    reader.write("the cat sat on the mat and a little")
    assert reader.page.locator("#views").bounding_box()["y"] == before["y"]
