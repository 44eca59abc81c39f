"""A server that goes away and comes back, or asks the client to wait."""

import pytest
from playwright.sync_api import expect


@pytest.fixture
def visited(visit):
    reader = visit(allow="ERR_CONNECTION_REFUSED|ERR_FAILED|status of 503")
    reader.open(text="At the start")
    return reader


def disconnect(reader):
    reader.page.route("**/api/v1/**", lambda route: route.abort("connectionrefused"))


def fail_on(reader, text):
    reader.page.fill("#text", text)
    reader.page.locator("#notice").wait_for()


def test_a_network_that_is_back_is_tried_at_once(visited):
    visited.page.clock.install()
    disconnect(visited)
    fail_on(visited, "Nobody is there")
    for pause in (1, 2, 4):
        with visited.page.expect_event("requestfailed"):
            visited.page.clock.run_for(pause * 1000)
        expect(visited.page.locator("#main")).to_have_attribute("aria-busy", "false")
    visited.page.unroute_all()
    with visited.page.expect_request("**/api/v1/models", timeout=4000):
        visited.page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(visited.page.locator("#results")).to_be_visible()


def test_a_page_that_nobody_looks_at_asks_nothing_until_it_is_looked_at_again(visited):
    disconnect(visited)
    fail_on(visited, "Nobody looks")
    visited.page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true, configurable: true })"
    )
    visited.page.wait_for_timeout(300)
    visited.page.unroute_all()
    asked = visited.asks()
    visited.page.wait_for_timeout(3000)
    assert asked == []
    visited.page.evaluate(
        "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"
    )
    expect(visited.page.locator("#results")).to_be_visible()
