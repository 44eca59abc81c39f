"""The residual stream: the logit lens, norms, what is written, what the layer norms see."""

import numpy as np
import pytest

TEXT = "Once upon a time there was a little"


@pytest.fixture
def lens(ask):
    """The probabilities of the API's logit lens, by layer, position and rank."""
    found = ask("trace", text=TEXT, capture=[], analyses=["logit_lens"])
    return np.array(found["analyses"]["logit_lens"]["probabilities"]["data"])


def plain(text):
    """Text without the marks that keep a token's direction to itself."""
    return text.replace("\u2068", "").replace("\u2069", "")


def lens_cell(reader, layer, position, layers, count):
    """The middle of a cell of a lens of one line; the tokens stand above the layers."""
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
