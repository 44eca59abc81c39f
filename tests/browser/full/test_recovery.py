"""A server that goes away and comes back, or asks the client to wait."""

import json

import pytest
from playwright.sync_api import expect

GONE = "ERR_CONNECTION_REFUSED|ERR_FAILED"


class Fault:
    """Lets what it is told to happen to every call of the API, and counts the calls for a trace."""

    def __init__(self, page):
        self.answer = None
        self.asked = []
        page.route("**/api/v1/**", self.handle)

    def handle(self, route):
        if route.request.url.endswith("/trace"):
            self.asked.append(json.loads(route.request.post_data)["text"])
        if self.answer is None:
            route.continue_()
        elif self.answer == "gone":
            route.abort("connectionrefused")
        elif route.request.url.endswith("/trace"):
            route.fulfill(**self.answer)
        else:
            route.continue_()


def problem(status, **headers):
    return {
        "status": status,
        "headers": {"Content-Type": "application/problem+json", **headers},
        "body": json.dumps({"title": "Refused here", "status": status, "detail": "A reason."}),
    }


@pytest.fixture
def visited(visit):
    reader = visit(allow=f"{GONE}|status of [45]")
    reader.open(text="At the start")
    return reader, Fault(reader.page)


def fail_on(reader, text):
    reader.page.fill("#text", text)
    reader.page.locator("#notice").wait_for()


def test_enter_reads_a_text_that_could_not_be_read(visited):
    reader, fault = visited
    fault.answer = problem(503)
    fail_on(reader, "Is anybody there")
    fault.answer = None
    reader.page.press("#text", "Enter")
    expect(reader.page.locator(".chip", has_text="·anybody")).to_be_visible()


def test_the_pauses_grow(visited):
    reader, fault = visited
    reader.page.clock.install()
    fault.answer = "gone"
    attempts = []
    reader.page.on("request", lambda r: attempts.append(r) if "/models" in r.url else None)
    fail_on(reader, "Nobody is there")
    for pause in (1, 2, 4):
        before = len(attempts)
        reader.page.clock.run_for(pause * 1000 - 200)
        assert len(attempts) == before
        with reader.page.expect_event("requestfailed"):
            reader.page.clock.run_for(200)
        expect(reader.page.locator("#main")).to_have_attribute("aria-busy", "false")
        assert len(attempts) == before + 1


def test_a_network_that_is_back_is_tried_at_once(visited):
    reader, fault = visited
    reader.page.clock.install()
    fault.answer = "gone"
    fail_on(reader, "Nobody is there")
    for pause in (1, 2, 4):
        with reader.page.expect_event("requestfailed"):
            reader.page.clock.run_for(pause * 1000)
        expect(reader.page.locator("#main")).to_have_attribute("aria-busy", "false")
    fault.answer = None
    with reader.page.expect_request("**/api/v1/models", timeout=4000):
        reader.page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(reader.page.locator("#results")).to_be_visible()


def test_a_page_that_nobody_looks_at_asks_nothing_until_it_is_looked_at_again(visited):
    reader, fault = visited
    fault.answer = "gone"
    fail_on(reader, "Nobody looks")
    reader.page.evaluate(
        "Object.defineProperty(document, 'hidden', { value: true, configurable: true })"
    )
    reader.page.wait_for_timeout(300)
    fault.asked.clear()
    fault.answer = None
    reader.page.wait_for_timeout(3000)
    assert fault.asked == []
    reader.page.evaluate(
        "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"
    )
    expect(reader.page.locator("#results")).to_be_visible()


def test_a_busy_server_is_asked_again_after_the_time_it_names_and_not_for_ever(visited):
    reader, fault = visited
    reader.page.clock.install()
    fault.answer = problem(503, **{"Retry-After": "7"})
    fail_on(reader, "Busy now")
    assert "keeps trying" in reader.page.locator("#notice").text_content()
    assert len(fault.asked) == 1
    reader.page.clock.run_for(6000)
    assert len(fault.asked) == 1
    for _ in range(9):
        reader.page.clock.run_for(31_000)
        expect(reader.page.locator("#main")).to_have_attribute("aria-busy", "false")
    assert len(fault.asked) == 6
    assert "try again" in reader.page.locator(".notice-advice").text_content()
    fault.answer = None
    reader.page.get_by_role("button", name="Try again").click()
    expect(reader.page.locator("#results")).to_be_visible()


@pytest.mark.parametrize("status", [404, 422, 429])
def test_a_refusal_is_never_asked_again_by_itself(visited, status):
    reader, fault = visited
    reader.page.clock.install()
    fault.answer = problem(status, **{"Retry-After": "1"})
    fail_on(reader, "Refused")
    reader.page.clock.run_for(120_000)
    assert fault.asked == ["Refused"]
    assert "by itself" not in reader.page.locator("#notice").text_content()
