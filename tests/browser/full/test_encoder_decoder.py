"""A translator: two sentences, three places of attention, and the reader's own translation."""

import re

import pytest
from playwright.sync_api import expect

TEXT = "the cat sat on the mat"
OWN = "le chat dort"
LINK = {"model": "pairs", "text": TEXT, "layer": 1, "head": 1}
CROSS = "decoder.layers.1.cross_attention.weights"


@pytest.fixture
def answer(ask):
    """Return the API's trace of the user's own translation."""

    def trace(site=CROSS, **body):
        reply = ask("trace", model="pairs", text=TEXT, capture=[site], **body)
        return reply["tensors"][site]["data"][1] if site in reply["tensors"] else reply

    return trace


@pytest.fixture
def shown(reader):
    reader.open(**LINK, target=OWN)
    return reader


def labels(reader, axis):
    return reader.view.locator(f".{axis}tick text").all_text_contents()


def strongest(numbers):
    return max(range(len(numbers)), key=numbers.__getitem__)


def where(reader):
    return reader.view.locator(".where input:checked").get_attribute("value")


def test_cross_attention_is_shown_first_with_target_rows_and_source_columns(shown, answer):
    weights = answer(target=OWN)
    assert where(shown) == "cross"
    written = shown.target[1:]  # a row is named by the token that is written from it
    assert labels(shown, "y") == [token.strip("·") for token in written]
    source = shown.chips[: len(weights[0])]
    assert labels(shown, "x") == [token.strip("·") for token in source]
    assert shown.page.locator(".heads-cell").count() == 4
    row, column = 1, strongest(weights[1])
    shown.page.mouse.move(*shown.cell(row, column, len(written), len(weights[0])))
    query, key = written[row].strip("·"), source[column].strip("·")
    assert shown.tip().endswith(f"\n{weights[row][column]:.4f}")
    assert shown.readout.startswith(f"The row that wrote “{query}” attends to “{key}")
    assert shown.readout.endswith("(cross-attention, layer 1, head 1)")
    assert "is-query" in shown.page.locator("#target-chips .chip").nth(row + 1).get_attribute(
        "class"
    )
    assert "is-key" in shown.page.locator("#chips .chip").nth(column).get_attribute("class")


def test_ones_own_translation_is_read_and_emptied_it_is_the_models_again(reader, answer):
    reader.open(**LINK)
    asked = reader.asks()
    with reader.reading_again():
        reader.page.fill("#target", OWN)
    assert asked[-1]["target"] == OWN
    assert "".join(reader.target) == "<s>" + OWN.replace(" ", "·")
    assert "target=le+chat+dort" in reader.fragment
    assert not reader.page.locator("#translated").is_visible()
    with reader.reading_again():
        reader.page.fill("#target", "")
    assert "target" not in asked[-1]
    assert "target=" not in reader.fragment
    assert reader.page.locator("#translated").is_visible()
    with reader.reading_again():
        reader.page.fill("#target", OWN)
    with reader.reading_again():
        reader.page.get_by_role("button", name="Back to the model’s").click()
    assert reader.page.input_value("#target") == ""


def test_a_translation_does_not_stay_beside_another_sentence_as_if_it_were_its_own(visit):
    reader = visit(allow="ERR_CONNECTION_REFUSED")
    reader.open(**LINK)
    translated = reader.page.locator("#translated")
    before = translated.inner_text()
    reader.page.route("**/api/v1/**", lambda route: route.abort("connectionrefused"))
    reader.page.fill("#text", "the dog ran")
    reader.page.locator("#notice").wait_for()
    assert translated.inner_text() == before
    expect(reader.page.locator("#translation")).to_have_class(re.compile("is-stale"))
    reader.page.fill("#text", "")
    reader.page.get_by_text("Nothing to read yet").wait_for()
    expect(translated).to_have_text("–")
