"""Sizes, themes, and what a screen reader is given."""

import pytest

TEXT = "Dorothy and Toto went into the forest. It was dark, and Dorothy held the little dog."


def test_the_sentence_stays_in_sight_while_scrolling(reader):
    reader.open(text=TEXT)
    reader.page.mouse.wheel(0, 600)
    reader.page.wait_for_selector(".sentence.is-stuck")
    assert reader.page.evaluate("scrollY") > 200
    assert reader.page.locator("#chips").bounding_box()["y"] >= 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_system_decides_the_theme_until_somebody_does(visit, theme):
    reader = visit(color_scheme=theme)
    reader.open(text=TEXT)
    ground = sum(reader.colour(5, 5))
    assert ground > 700 if theme == "light" else ground < 120
    other = "Dark" if theme == "light" else "Light"
    reader.choose_theme(other)
    reader.wait_until_drawn()
    assert (sum(reader.colour(5, 5)) > 700) is (other == "Light")
    plot = reader.view.locator(".plot").bounding_box()
    assert (sum(reader.colour(plot["x"] + 3, plot["y"] + 3)) > 700) is (other == "Light")
    reader.page.reload()
    reader.wait_until_drawn()
    assert (sum(reader.colour(5, 5)) > 700) is (other == "Light")


def test_on_paper_nothing_covers_anything_and_there_is_nothing_to_press(reader):
    reader.open(text=TEXT, layer=99, head=99)
    reader.page.mouse.wheel(0, 600)
    reader.page.wait_for_selector(".sentence.is-stuck")
    reader.page.emulate_media(media="print")
    sentence = reader.page.locator("#sentence")
    assert sentence.evaluate("(node) => getComputedStyle(node).position") == "static"
    assert reader.page.locator(".rail, .exports, #examples").evaluate_all(
        "(nodes) => nodes.every((node) => node.getClientRects().length === 0)"
    )
    assert reader.view.locator("h2", has_text="Layer 3, head 5").is_visible()


SHIFTS = """new Promise((done) => new PerformanceObserver((list) => {
  done(list.getEntries().reduce((sum, { value }) => sum + value, 0));
}).observe({ type: 'layout-shift', buffered: true }))"""


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_does_not_jump_while_the_first_answer_comes(visit, width):
    reader = visit(width=width)
    reader.open(text=TEXT)
    assert (
        reader.page.evaluate(
            f"Promise.race([{SHIFTS}, new Promise((r) => setTimeout(r, 1000, 0))])"
        )
        < 0.1
    )
