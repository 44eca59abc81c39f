"""The residual stream: the logit lens."""

import numpy as np
import pytest

TEXT = "Once upon a time there was a little"


@pytest.fixture
def lens(ask):
    """Return the probabilities of the API's logit lens, by layer, position and rank."""
    answer = ask("trace", text=TEXT, capture=[], analyses=["logit_lens"])
    return np.array(answer["analyses"]["logit_lens"]["probabilities"]["data"])


def plain(text):
    """Return the text without the marks that keep a token's direction to itself."""
    return text.replace("\u2068", "").replace("\u2069", "")


def percent(share):
    return f"{100 * share:.1f} %"


def lens_cell(reader, layer, position, layers, count):
    """Return the middle of a cell of a lens of one line; the tokens are above the layers."""
    return reader.cell(layer + 1, position, layers + 1, count)


def test_a_cell_of_the_lens_opens_its_likeliest_tokens_and_the_link_keeps_it(reader, lens):
    reader.open(text=TEXT, view="stream")
    layers, count, _ = lens.shape
    opened = headings_of(reader)
    assert "(the last)" in opened[-1]
    reader.page.mouse.click(*lens_cell(reader, 1, 4, layers, count))
    reader.wait_until_drawn()
    chosen = headings_of(reader)
    assert chosen[2:] == [
        f"After “time”, read after layer {layer}" for layer in ("1", f"{layers - 1} (the last)")
    ]
    fragment = reader.fragment
    assert "stream_layer=1" in fragment
    assert "query=4" in fragment
    reader.page.reload()
    reader.wait_until_drawn()
    assert reader.fragment == fragment
    assert headings_of(reader) == chosen
    reader.page.go_back()
    reader.wait_until_drawn()
    assert headings_of(reader) == opened


def headings_of(reader):
    return [plain(heading) for heading in reader.view.locator("h2").all_text_contents()]


def test_the_lens_is_walked_by_keyboard_and_read_out(reader, lens):
    reader.open(text=TEXT, view="stream")
    layers, count, _ = lens.shape
    plot = reader.view.locator(".plot").first
    assert "likeliest token after each of 4 layers" in plot.get_attribute("aria-label")
    plot.focus()
    reader.page.keyboard.press("ArrowUp")
    reader.page.keyboard.press("ArrowLeft")
    said = percent(lens[layers - 2, count - 2, 0])
    assert f"After the second “a”, layer {layers - 2} predicts" in reader.announced
    assert said in reader.announced
    reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert f"stream_layer={layers - 2}" in reader.fragment
    assert f"query={count - 2}" in reader.fragment
