"""The question marks: what they say, and that everybody can reach them."""

import pytest
from axe_playwright_python.sync_playwright import Axe

TEXT = "Once upon a time there was a little fox."


def test_the_switches_are_explained_by_a_key_and_escape_goes_back(reader):
    reader.open(text=TEXT)
    button = reader.view.get_by_role("button", name="What the switches do")
    button.focus()
    reader.page.keyboard.press("Enter")
    box = reader.view.locator(".help-box.is-placed")
    box.wait_for()
    assert box.get_by_text("Rollout").is_visible()
    assert box.get_by_text("All layers up to this one together").is_visible()
    assert "help-box" in reader.page.evaluate("document.activeElement.className")
    reader.page.keyboard.press("Escape")
    assert not reader.page.locator(".help-box.is-placed").is_visible()
    assert reader.page.evaluate("document.activeElement.className") == "help-button"


def test_the_labels_of_heads_are_explained_by_a_press(reader):
    reader.open(text=TEXT)
    reader.view.get_by_role("button", name="What the labels of heads mean").click()
    box = reader.view.locator(".help-box.is-placed")
    box.wait_for()
    assert "Induction" in box.locator("dt").all_text_contents()
    reader.page.mouse.click(5, 5)
    assert not reader.page.locator(".help-box.is-placed").is_visible()


@pytest.mark.parametrize("width", [390, 1440])
def test_what_is_said_is_within_the_screen_and_axe_finds_nothing_wrong(visit, width):
    reader = visit(width=width, bypass_csp=True)
    reader.open(text=TEXT)
    for button in reader.view.locator(".help-button:visible").all():
        reader.page.keyboard.press("Escape")
        button.click()
        box = reader.view.locator(".help-box.is-placed").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900
    found = Axe().run(reader.page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found] == []


@pytest.mark.parametrize("view", ["attention", "positions", "stream"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_question_mark_of_the_switches_stands_beside_the_sentence_of_the_view(
    visit, view, width
):
    reader = visit(width=width)
    reader.open(text=TEXT, view=view)
    mark = reader.view.get_by_role("button", name="What the switches do").bounding_box()
    sentence = reader.view.locator(".help").bounding_box()
    assert sentence["x"] + sentence["width"] <= mark["x"]
    assert mark["x"] + mark["width"] <= width
    assert sentence["y"] - 8 <= mark["y"] < sentence["y"] + sentence["height"]
