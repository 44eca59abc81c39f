"""One head: its profile, and the circuits of its weights, by pointer and by keyboard."""

import pytest
from playwright.sync_api import expect

TEXT = "Mary saw the old king. Then Mary"


@pytest.fixture
def circuits(ask):
    """The circuits of one head that the API gives."""
    found = ask("trace", text=TEXT, capture=[], analyses=["head_circuits"], heads=[4])
    return found["analyses"]["head_circuits"]


def bars(reader, panel):
    """The numbers of a bar chart."""
    texts = reader.view.locator(".panel").nth(panel).locator(".bartext").all_text_contents()
    return [text.replace("−", "-") for text in texts]


def test_the_keyboard_walks_through_what_a_head_writes_and_to_the_next_head(reader):
    reader.open(text=TEXT, view="head", layer=1, head=4)
    reader.view.locator(".plot").nth(1).focus()
    reader.page.keyboard.press("Home")
    assert "the head adds" in reader.announced
    before = bars(reader, 1)
    reader.page.keyboard.press("l")
    reader.wait_until_drawn()
    assert "head=5" in reader.page.url
    assert bars(reader, 1) != before


def test_a_model_without_circuits_keeps_the_rest_of_the_view(reader):
    reader.open(model="blanks", text="a little light", view="head", layer=0, head=0)
    expect(reader.view.locator(".panel").first).to_contain_text("headlight evaluate")
    assert len(bars(reader, 1)) == 10
