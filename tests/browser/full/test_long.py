"""The overview of a text of any length: its regions, by pointer and by keyboard."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect


def region_of(reader):
    """The region in the link; None: the whole text."""
    return parse_qs(urlsplit(reader.page.url).fragment).get("long_region")


def test_a_button_zooms_in_and_another_shows_the_whole_text(reader):
    reader.open_view("long")
    assert region_of(reader) is None
    reader.view.get_by_role("button", name="Zoom in").click()
    reader.page.wait_for_function("location.hash.includes('long_region')")
    reader.wait_until_drawn()
    reader.view.get_by_role("button", name="Whole text").click()
    reader.page.wait_for_function("!location.hash.includes('long_region')")


def test_the_keys_zoom_in_and_out(reader):
    reader.open_view("long")
    reader.view.locator(".plot").first.focus()
    reader.page.keyboard.press("+")
    reader.page.wait_for_function("location.hash.includes('long_region')")
    reader.wait_until_drawn()
    expect(reader.view.locator(".plot").first).to_be_visible()
    reader.page.keyboard.press("0")
    reader.page.wait_for_function("!location.hash.includes('long_region')")
