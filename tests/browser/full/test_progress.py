"""Long work: what says that it goes on, and how it is given up."""

from playwright.sync_api import expect


def test_quick_answers_bring_no_button(reader):
    reader.open(text="Once upon a time")
    assert not reader.page.locator("#cancel").is_visible()
    assert not reader.page.locator("#elapsed").is_visible()


def test_a_long_reading_tells_its_time_and_can_be_cancelled_by_keys(reader, hold):
    reader.open(text="Once upon a time")
    page = reader.page
    held = hold(page, "slow")
    page.fill("#text", "A slow text")
    page.press("#text", "Enter")
    cancel = page.get_by_role("button", name="Cancel")
    cancel.wait_for()
    assert page.locator("#elapsed").text_content() in ("1 s", "2 s", "3 s")
    with page.expect_event("requestfailed"):
        cancel.press("Enter")
    assert len(held) == 1
    expect(page.locator("#status")).to_have_text(
        "Cancelled. What is below is of before; Enter in the box reads its text."
    )
    assert page.locator("#main").get_attribute("aria-busy") == "false"
    assert not cancel.is_visible()
    assert page.evaluate("document.activeElement.id") == "text"
    assert page.input_value("#text") == "A slow text", "nothing is lost"
    page.unroute_all(behavior="ignoreErrors")
    with reader.reading_anew():
        page.keyboard.press("Enter")
    assert reader.chips[1:4] == ["A", "·s", "low"] or "·slow" in reader.chips


def test_further_answers_of_a_view_can_be_cancelled_too(reader):
    reader.open(text="Once upon a time", view="stream")
    page = reader.page
    page.wait_for_selector("#main[aria-busy=false]")
    held = []
    page.route("**/api/v1/trace", lambda route: held.append(route))
    page.get_by_role("tab", name="Compare").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#main")).to_have_attribute("aria-busy", "false")
    assert "Cancelled" in reader.view.text_content()
    page.unroute_all(behavior="ignoreErrors")
    reader.choose_view("Attention")
    with page.expect_response("**/api/v1/trace"):
        page.get_by_role("tab", name="Compare").click()
