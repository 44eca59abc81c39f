"""The switches of the Attention view: what is shown, of which heads, and how."""

import numpy as np
import pytest
from playwright.sync_api import expect

TEXT = "Doctor Mouse sat down by the river, and the grey goose flew away. Doctor"
LAYER, HEAD = 1, 4
PATH = f"decoder.layers.{LAYER}.self_attention"


@pytest.fixture
def shown(reader):
    reader.open(text=TEXT, layer=LAYER, head=HEAD)
    return reader


@pytest.fixture
def tensor(ask):
    def get(name):
        data = ask("trace", text=TEXT, capture=[f"{PATH}.{name}"])["tensors"][f"{PATH}.{name}"]
        return np.array(data["data"], dtype=float)

    return get


def choose(reader, title):
    """Set one of the switches, which are behind “Display”."""
    reader.view.locator(".controls-more summary").click()
    menu = reader.view.locator("select", has=reader.page.locator("option", has_text=title))
    if menu.count():
        menu.select_option(label=title)
    else:
        reader.view.get_by_role("radio", name=title, exact=True).check(force=True)
    reader.view.locator(".controls-more summary").click()
    reader.wait_until_drawn()


def heading(reader):
    return reader.view.locator(".panel h2").text_content()


def test_scores_are_asked_for_once_and_only_when_chosen(shown):
    asked = shown.asks()
    choose(shown, "Log")
    assert asked == []
    choose(shown, "Scores")
    choose(shown, "Weights")
    choose(shown, "Scores")
    shown.page.locator(".heads-cell[aria-label^='Layer 1, head 0']").click()
    shown.wait_until_drawn()
    assert [body["capture"] for body in asked] == [[f"{PATH}.scores"]]


def test_a_map_that_is_pressed_joins_the_set_and_all_of_the_set_are_marked(shown):
    choose(shown, "Several")
    shown.page.locator(f".heads-cell[aria-label^='Layer {LAYER}, head 2']").click()
    shown.wait_until_drawn()
    assert heading(shown) == f"Layer {LAYER}, mean of heads 2 and {HEAD}"
    marked = shown.page.locator(".heads-cell[aria-selected=true]")
    names = marked.evaluate_all("(cells) => cells.map((cell) => cell.ariaLabel.split(':')[0])")
    assert names == [f"Layer {LAYER}, head 2", f"Layer {LAYER}, head {HEAD}"]


def test_a_click_on_a_cell_chooses_query_and_key_and_offers_its_arithmetic(shown, tensor):
    weights = tensor("weights")[HEAD]
    count = len(weights)
    shown.page.mouse.move(*shown.cell(11, 8, count, count))
    shown.view.locator(".tip.is-shown").wait_for()
    shown.page.mouse.click(*shown.cell(11, 8, count, count))
    shown.page.wait_for_url("**query=11**")
    shown.wait_until_drawn()
    assert "key=8" in shown.fragment
    action = shown.view.locator(".panel-actions button", has_text="Why")
    assert action.text_content() == f"Why {weights[11, 8]:.3f}?"
    mark = shown.view.locator(".plot-mark.is-picked").bounding_box()
    x, y = shown.cell(11, 8, count, count)
    assert mark["x"] < x < mark["x"] + mark["width"]
    assert mark["y"] < y < mark["y"] + mark["height"]
    action.click()
    shown.wait_until_drawn()
    assert "view=why" in shown.fragment
    readout = f"with weight {weights[11, 8]:.3f} (layer {LAYER}, head {HEAD})"
    expect(shown.page.locator("#readout")).to_contain_text(readout)
