"""Positions as maps and as a rotation, and four schemes side by side."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

TEXT = "Once upon a time there was a little girl"
PARTS = ["rotation", "schemes"]


@pytest.fixture
def at_positions(reader):
    """Return a function that opens a part of the view and waits until its figures are drawn."""

    def go(part="encoding", text=TEXT, **fragment):
        reader.open(text=text, view="positions", positions_show=part, **fragment)
        return settle(reader)

    return go


def settle(reader):
    reader.page.wait_for_selector("#main[aria-busy=false]")
    reader.page.wait_for_function(
        "[...document.querySelectorAll('.view:not([hidden]) .panel')].every((panel) =>"
        " panel.querySelector('.panel-notice:not([hidden])') || panel.querySelector('.nsewdrag'))"
    )
    reader.wait_until_drawn()
    return reader


def show(reader, title):
    reader.view.get_by_role("radio", name=title).check()
    settle(reader)


def titles(reader):
    return reader.view.locator(".panel h2").all_text_contents()


def test_every_part_is_a_click_away_and_a_step_back(at_positions):
    reader = at_positions()
    assert titles(reader) == ["The encoding that was added", "Similarity of positions"]
    show(reader, "Rotation")
    assert "positions_show=rotation" in reader.fragment
    show(reader, "Schemes")
    assert titles(reader) == ["Sinusoidal", "Learned", "Rotary", "ALiBi"]
    reader.page.go_back()
    settle(reader)
    assert titles(reader)[0] == "R(3) carries position 6 to 9"
    reader.page.reload()
    settle(reader)
    assert titles(reader)[0] == "R(3) carries position 6 to 9"


def test_k_is_set_by_arrow_keys_and_the_start_by_choosing_a_token(at_positions):
    reader = at_positions("rotation", query=2)
    reader.view.get_by_role("slider", name="k").focus()
    reader.page.keyboard.press("ArrowRight")
    settle(reader)
    assert titles(reader) == ["R(4) carries position 2 to 6"]
    reader.page.locator("#chips .chip").nth(1).click()
    settle(reader)
    assert titles(reader)[0] == "R(4) carries position 1 to 5"
    reader.view.locator(".plot").first.focus()
    reader.page.keyboard.press("ArrowDown")
    assert re.match(r"Pair 4: PE\(1\) \(.*\), rotated by [\d.]+ rad, is ", reader.announced)
    marks = reader.page.locator("#chips .chip.is-key")
    assert marks.count() == 1


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_wider_than_a_phone_and_axe_finds_nothing(visit, part):
    reader = visit(width=390, height=844)
    reader.open(text=TEXT, view="positions", positions_show=part)
    settle(reader)
    assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    violations = Axe().run(reader.page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in violations] == []
