"""The words that may come next, and the part of each head in them."""

import re

from playwright.sync_api import expect

NUMBER = "#next .next-word.is-chosen .next-number"


def test_a_head_is_switched_off_on_the_map_and_put_back_and_the_next_word_follows(reader):
    reader.page.goto("about:blank")
    reader.open()
    assert "keys" in reader.page.locator("#insight").text_content()
    number = reader.page.locator(NUMBER)
    before = number.text_content()
    assert re.fullmatch(r"\d+ %", before)
    cause = reader.page.locator(".next-cause", has_text="keys").first
    cause.wait_for()
    address = re.search(r"layer (\d+), head (\d+)", cause.text_content()).groups()
    head = reader.page.locator(f'#map [data-part="head decoder {" ".join(address)}"]')
    head.click()
    expect(number).not_to_have_text(before)
    expect(head).to_have_class(re.compile("is-off"))
    assert "off=" in reader.fragment
    head.click()
    expect(number).to_have_text(before)
    expect(head).not_to_have_class(re.compile("is-off"))
    assert "off=" not in reader.fragment


def test_a_word_that_may_come_next_is_asked_about(reader):
    reader.open(text="The keys to the cabinet", view="attention")
    cause = reader.page.locator(".next-cause").first
    before = cause.text_content()
    other = reader.page.locator("#next .next-name").nth(1)
    other.click()
    expect(other).to_have_attribute("aria-pressed", "true")
    expect(cause).not_to_have_text(before)
    reader.page.locator("#next").get_by_role("button", name="why?").click()
    reader.wait_until_plotted()
    assert reader.open_view_id == "word"
