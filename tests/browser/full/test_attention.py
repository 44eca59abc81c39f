"""The attention of every head, by mouse, by touch and by keyboard."""

import pytest

TEXT = "The animal did not cross the street because it was too tired."
LAYER, HEAD = 1, 2


@pytest.fixture
def weights(ask):
    site = f"decoder.layers.{LAYER}.self_attention.weights"
    return ask("trace", text=TEXT, capture=[site])["tensors"][site]["data"][HEAD]


@pytest.fixture
def shown(reader):
    reader.open(text=TEXT, layer=LAYER, head=HEAD)
    return reader


def strongest(row):
    return max(range(len(row)), key=row.__getitem__)


def test_pointing_at_a_cell_reads_it_and_marks_it_in_the_sentence(shown, weights):
    row = 9
    column = strongest(weights[row])
    shown.page.mouse.move(*shown.cell(row, column, len(weights), len(weights)))
    tokens = [chip.strip("·") for chip in shown.chips]
    assert shown.tip() == f"“{tokens[row]}” → “{tokens[column]}”\n{weights[row][column]:.4f}"
    target = "itself" if column == row else f"“{tokens[column]}”"
    assert shown.readout.startswith(f"“{tokens[row]}” attends to {target} with weight")
    assert shown.readout.endswith(f"(layer {LAYER}, head {HEAD})")
    chips = shown.page.locator(".chip")
    assert "is-query" in chips.nth(row).get_attribute("class")
    assert "is-key" in chips.nth(column).get_attribute("class")
    for mark in ("row", "column", "cell"):
        assert shown.view.locator(f".plot-mark.is-{mark}").is_visible()


def test_heads_are_reached_by_arrow_keys_and_chosen_by_enter(shown):
    shown.page.locator(".heads-cell[aria-selected=true]").focus()
    shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("ArrowUp")
    focused = shown.page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert shown.page.locator(".heads-block .heads-caption").text_content().startswith(focused)
    place, _ = focused.split(": ")
    assert place == f"Layer {LAYER - 1}, head {HEAD + 1}"
    assert shown.chosen_head == f"Layer {LAYER}, head {HEAD}"
    shown.page.keyboard.press("Enter")
    shown.wait_until_drawn()
    assert shown.chosen_head == place
    assert shown.page.evaluate("document.activeElement.getAttribute('aria-label')") == focused


def test_clicking_a_chip_or_walking_the_chips_chooses_the_query(shown):
    chips = shown.page.locator(".chip")
    chips.nth(4).click()
    assert "query=4" in shown.fragment
    shown.page.keyboard.press("ArrowRight")
    assert chips.nth(5).get_attribute("aria-selected") == "true"
    assert shown.readout.startswith(f"“{shown.chips[5].strip('·')}” attends most to")
