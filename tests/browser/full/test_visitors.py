"""Five visitors, each at their task from a cold start, with the clicks that it takes."""

import csv
import subprocess
import sys

import pytest
from playwright.sync_api import expect

COUNT = """addEventListener('pointerup', ({ isTrusted }) => {
  if (isTrusted) window.presses = (window.presses ?? 0) + 1;
}, true);"""


@pytest.fixture
def arrive(visit):
    """Return a function that opens the page as somebody does who has never seen it."""

    def come(**options):
        reader = visit(**options)
        reader.page.add_init_script(COUNT)
        reader.open()
        return reader

    return come


def presses(reader):
    """Return how often a mouse button or a finger was lifted."""
    return reader.page.evaluate("window.presses ?? 0")


def press(reader, name, within=None):
    (within or reader.page).get_by_role("button", name=name, exact=True).click()


def test_a_researcher_scripts_and_exports_the_same_numbers(arrive, tmp_path):
    researcher = arrive(permissions=("clipboard-read", "clipboard-write"))
    saved = researcher.save("CSV", tmp_path).read_text().splitlines()
    drawn = [[float(cell or 0) for cell in row[1:]] for row in list(csv.reader(saved))[1:]]
    command = [sys.executable, "-c", researcher.copy("Python")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = printed.partition("['head', 'query', 'key']")[2].splitlines()[1:]
    assert [[float(cell) for cell in row.split()] for row in rows] == [
        pytest.approx(row, abs=1e-4) for row in drawn
    ]
    assert presses(researcher) == 4


def test_somebody_with_a_screen_reader_walks_to_a_head_and_a_weight(arrive):
    listener = arrive()
    keyboard = listener.page.keyboard
    keyboard.press("Tab")
    keyboard.press("Enter")  # skip to the drawing
    expect(listener.view.locator(".plot").first).to_be_focused()
    keyboard.press("m")
    focused = listener.page.locator(":focus")
    assert focused.evaluate("(node) => node.closest('[role=toolbar]') !== null")
    before = focused.get_attribute("aria-label")
    keyboard.press("ArrowDown")
    assert listener.page.locator(":focus").get_attribute("aria-label") != before
    keyboard.press("Home")
    for _ in range(9):
        keyboard.press("ArrowDown")
        if "head" in listener.page.locator(":focus").get_attribute("aria-label"):
            break
    assert "head" in listener.page.locator(":focus").get_attribute("aria-label")
    keyboard.press("Enter")
    listener.wait_until_drawn()
    assert "layer=" in listener.fragment, "the head is open"
    listener.page.locator("#switch").focus()
    keyboard.press("Space")
    announcer = listener.page.locator("#announcer")
    expect(announcer).to_contain_text("Without layer")  # and what the model writes then
    keyboard.press("Space")
    keyboard.press("l")
    listener.wait_until_drawn()
    assert "head" in listener.announced
    listener.view.locator(".plot").first.focus()
    listener.page.evaluate("document.querySelector('#announcer').textContent = ''")
    keyboard.press("ArrowUp")  # from the last row
    assert "attends to" in listener.announced
    assert presses(listener) == 0
