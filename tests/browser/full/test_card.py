"""The card of a model, in the page's foot and as a page of its own."""

import pytest
from axe_playwright_python.sync_playwright import Axe


def test_the_foot_of_the_page_leads_to_the_whole_card_and_back(reader):
    reader.open(text="the cat sat on the mat", model="plain")
    page = reader.page
    page.locator("#card").get_by_role("link", name="The whole card").click()
    page.wait_for_url("**/models/plain/card")
    assert page.locator("h1").text_content() == "The model: Plain"
    assert page.locator(".facts dt").first.text_content() == "Licence"
    page.get_by_role("link", name="Read a sentence with it").click()
    reader.wait_until_drawn()
    assert page.locator("#model").input_value() == "plain"


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_card_can_be_read_by_everybody(visit, width, theme):
    reader = visit(width=width, color_scheme=theme)
    page = reader.page
    page.goto(f"{reader.url}/models/stories/card")
    assert page.get_by_role("heading", name="What it read").is_visible()
    assert page.get_by_role("columnheader", name="figure").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert Axe().run(page).response["violations"] == []
