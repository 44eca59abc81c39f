"""The opening scene: one finding, its switch, and the words that may come next."""

import re

from playwright.sync_api import expect

NEXT = "#hero .slot-word:not(.is-leaving)"
CHOSEN = "#next .bar.is-chosen .bar-number"


def test_the_head_that_decides_is_switched_off_and_on_and_the_next_word_follows(reader):
    reader.page.goto("about:blank")
    reader.open()
    says, switch = reader.page.locator("#says"), reader.page.locator("#switch")
    expect(says).to_contain_text("looks back at")
    expect(says).to_contain_text("keys")
    address = re.search(r"layer (\d+), head (\d+)", says.text_content()).groups()
    head = reader.page.locator(f'#map [data-part="head decoder {" ".join(address)}"]')
    number, word = reader.page.locator(CHOSEN), reader.page.locator(NEXT)
    before, first = number.text_content(), word.text_content()
    assert re.fullmatch(r"\d+\s%", before)
    switch.click()
    expect(number).not_to_have_text(before)
    expect(says).to_contain_text("Without")
    expect(word).not_to_have_text(first)
    expect(head).to_have_class(re.compile("is-off"))
    assert "off=" in reader.fragment
    switch.click()
    expect(number).to_have_text(before)
    expect(word).to_have_text(first)
    expect(head).not_to_have_class(re.compile("is-off"))
    assert "off=" not in reader.fragment


def test_a_press_on_a_head_opens_it_and_breaks_nothing(reader):
    reader.open(text="The keys to the cabinet", view="attention")
    reader.page.locator("#switch").wait_for()
    reader.page.locator('#map [data-part="head decoder 1 2"]').click()
    expect(reader.page.locator("#says")).to_contain_text("Layer 1, head 2")
    assert "off=" not in reader.fragment
    reader.page.get_by_role("button", name="The head that decides").click()
    expect(reader.page.locator("#says")).to_contain_text("looks back at")


def test_another_word_is_explained_and_another_made_its_rival(reader):
    reader.open(text="The keys to the cabinet", view="attention")
    label = reader.page.locator("#next-label")
    expect(label).to_contain_text("against")
    bars = reader.page.locator("#next .bar")
    bars.nth(1).locator(".bar-name").click()
    expect(bars.nth(1)).to_have_class(re.compile("is-chosen"))
    bars.nth(2).hover()
    bars.nth(2).locator(".bar-against").click()
    expect(label).to_have_attribute("title", re.compile("as chosen"))
    expect(bars.nth(2)).to_have_class(re.compile("is-rival"))
    reader.page.get_by_role("button", name="Every reason").click()
    reader.wait_until_plotted()
    assert reader.open_view_id == "word"
