"""The documentation of the API, under the same strict policy as the page."""

from playwright.sync_api import expect


def test_calls_are_listed_and_can_be_opened_and_tried(reader):
    reader.page.goto(f"{reader.url}/docs")
    call = reader.page.locator(".opblock", has_text="/api/v1/limits")
    call.locator(".opblock-summary").click()
    call.get_by_role("button", name="Try it out").click()
    call.get_by_role("button", name="Execute").click()
    expect(call.locator(".live-responses-table")).to_contain_text("HEADLIGHT_MAX_CELLS")
