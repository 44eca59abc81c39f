"""The page on a phone: labels, touch, and turning it."""

import pytest
from playwright.sync_api import expect

TEXT = "The animal did not cross the street because it was too tired."


@pytest.fixture
def phone(visit):
    return visit(width=390, height=844, has_touch=True, is_mobile=True)


def labels(reader, axis):
    return reader.view.locator(f".{axis}tick text").all_text_contents()


def test_a_finger_that_rolls_a_little_still_reads_the_cell_it_came_down_on(phone):
    phone.open(text=TEXT, layer=1, head=2)
    count = len(phone.chips)
    x, y = phone.cell(8, 3, count, count)
    finger = phone.page.context.new_cdp_session(phone.page)
    for kind, points in [
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + 5, "y": y + 6}]),
        ("touchEnd", []),
    ]:
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    tokens = [chip.strip("·") for chip in phone.chips]
    assert f"“{tokens[8]}” → “{tokens[3]}”" in phone.tip()
    assert phone.readout.startswith(f"“{tokens[8]}” attends to “{tokens[3]}” with weight")
    assert phone.page.locator("#readout").bounding_box()["y"] >= 0, "the readout is in sight"


def test_turning_the_phone_turns_the_experts_and_keeps_the_token(phone):
    phone.open(text=TEXT, view="experts", query=3)
    assert labels(phone, "y")[: len(phone.chips)] == [chip.strip("·") for chip in phone.chips]
    phone.page.set_viewport_size({"width": 844, "height": 390})
    phone.view.locator(".xtick text", has_text="animal").first.wait_for()
    assert labels(phone, "x")[: len(phone.chips)] == [chip.strip("·") for chip in phone.chips]
    assert phone.readout.startswith("“did” goes through expert")
    phone.view.locator(".plot").first.evaluate(
        "(plot) => scrollBy(0, plot.getBoundingClientRect().top)"
    )
    for covering in ("#sentence", "#map"):
        expect(phone.page.locator(covering)).not_to_be_in_viewport()


def test_the_map_is_a_low_bar_and_other_links_are_a_menu(phone):
    phone.open(text=TEXT)
    page = phone.page
    assert page.locator("#map").bounding_box()["height"] <= 90
    nav = page.get_by_role("navigation", name="Site")
    assert nav.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    link = nav.get_by_role("link", name="Experiments")
    assert link.is_hidden()
    nav.get_by_role("button", name="Menu").tap()
    assert link.is_visible()
    page.locator("#theme").get_by_role("radio", name="Dark").check(force=True)
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.keyboard.press("Escape")
    assert link.is_hidden()


@pytest.mark.parametrize("view", ["attention", "why", "positions", "experts", "next_token"])
def test_what_can_be_pressed_is_large_enough_for_a_finger(phone, view):
    phone.open(text=TEXT, view=view)
    small = phone.page.locator(
        ":is(button, select, summary, .segmented label, nav a):visible, .chip"
    ).evaluate_all(
        """(nodes) => nodes.map((node) => [node.textContent, node.getBoundingClientRect()])
            .filter(([, box]) => box.width < 24 || box.height < 24)
            .map(([text, { width, height }]) => [text, width, height])"""
    )
    assert small == []
