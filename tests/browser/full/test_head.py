"""One head: its profile, and the circuits of its weights, by pointer and by keyboard."""

import pytest
from playwright.sync_api import expect

TEXT = "Mary saw the old king. Then Mary"
PATH = "decoder.layers.1.self_attention"


@pytest.fixture
def circuits(ask):
    """The circuits of one head that the API gives."""
    found = ask("trace", text=TEXT, capture=[], analyses=["head_circuits"], heads=[4])
    return found["analyses"]["head_circuits"]


def bars(reader, panel):
    """The numbers of a bar chart."""
    texts = reader.view.locator(".panel").nth(panel).locator(".bartext").all_text_contents()
    return [text.replace("−", "-") for text in texts]


def expected(circuits, name, unit, token):
    """The numbers of one token as the page writes them."""
    return [f"{value:+.2f}" for value in circuits[f"{PATH}.{name}_{unit}"]["data"][0][token]]


def test_the_circuits_are_those_of_the_api_for_the_chosen_tokens(reader, circuits):
    reader.open(text=TEXT, view="head", layer=1, head=4)
    reader.page.locator(".chip").nth(5).click()
    reader.wait_until_drawn()
    reader.view.get_by_label("Attending to").select_option("2")
    reader.wait_until_drawn()
    assert bars(reader, 1) == expected(circuits, "written", "logits", 2)
    assert bars(reader, 2) == expected(circuits, "sought", "scores", 5)
    assert "key=2" in reader.page.url
    expect(reader.view.locator(".panel").nth(1)).to_contain_text("Copying")


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
    expect(reader.view.locator(".panel").nth(1).locator(".bartext")).to_have_count(10)
