"""The page goes on when the server, a view or a library fails."""

from playwright.sync_api import expect

GONE = "ERR_CONNECTION_REFUSED|ERR_FAILED"


def disconnect(reader):
    reader.page.route("**/api/v1/**", lambda route: route.abort("connectionrefused"))


def test_what_was_read_stays_while_the_server_is_away_and_the_page_recovers(visit):
    reader = visit(allow=GONE)
    reader.open(text="At the start")
    before = reader.chips
    disconnect(reader)
    reader.page.fill("#text", "Is anybody there")
    reader.page.locator("#notice").wait_for()
    assert reader.chips == before
    expect(reader.page.locator("#results.is-stale")).to_be_visible()
    reader.page.unroute_all()
    expect(reader.page.locator(".chip", has_text="·anybody")).to_be_visible()
    expect(reader.page.locator("#notice")).to_be_hidden()
    disconnect(reader)
    reader.page.fill("#text", "Gone again")
    reader.page.locator("#notice").wait_for()
    reader.page.unroute_all()
    reader.page.get_by_role("button", name="Try again").click()
    expect(reader.page.locator(".chip", has_text="·again")).to_be_visible()


def test_a_page_that_is_opened_while_the_server_restarts_recovers_too(visit):
    reader = visit(allow=GONE)
    disconnect(reader)
    reader.page.goto(f"{reader.url}/#text=Opened+too+early")
    reader.page.locator("#notice").wait_for()
    reader.page.unroute_all()
    expect(reader.page.locator(".chip", has_text="·early")).to_be_visible()


def test_typing_again_cancels_the_request_before(reader, hold):
    reader.open(text="At the start")
    hold(reader.page, "never")
    with reader.page.expect_request("**/api/v1/trace"):
        reader.page.fill("#text", "This will never be answered")
    with reader.page.expect_event("requestfailed") as cancelled:
        reader.write("This is answered")
    assert cancelled.value.post_data_json["text"] == "This will never be answered"
    assert "·answered" in reader.chips


def test_a_long_reading_can_be_cancelled_by_keyboard(reader, hold):
    reader.open(text="At the start")
    page = reader.page
    hold(page, "slow")
    with page.expect_request("**/api/v1/trace"):
        page.fill("#text", "A slow text")
    with page.expect_event("requestfailed"):
        page.get_by_role("button", name="Cancel").press("Enter")
    expect(page.locator("#main")).to_have_attribute("aria-busy", "false")
    assert page.input_value("#text") == "A slow text"


def test_a_view_that_throws_names_itself_and_the_others_go_on(visit):
    reader = visit()

    def throw(route):
        answer = route.fetch()
        start = "figure(trace, state) {"
        body = answer.text()
        assert start in body
        broken = body.replace(start, "figure() { throw new Error('out of oil');", 1)
        route.fulfill(response=answer, body=broken)

    reader.page.route("**/positions.js*", throw)
    reader.open(view="positions")
    notices = reader.view.locator(".panel-notice").all_text_contents()
    assert notices
    assert all("Positions" in notice and "out of oil" in notice for notice in notices)
    reader.choose_view("attention")
    assert reader.view.locator(".plot").is_visible()


def test_without_plotly_the_table_still_holds_the_numbers(visit):
    reader = visit(allow="ERR_FAILED")
    reader.page.route("**/plotly.min.js*", lambda route: route.abort())
    reader.page.goto(reader.url)
    expect(reader.view.locator(".panel-notice")).to_contain_text("Plotly")
    assert reader.table()[1][1] == "1.0000"
