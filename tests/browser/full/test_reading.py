"""Typing a sentence: what is read, what is seen of it, and what happens on the way."""

import pytest
from playwright.sync_api import expect

TEXT = "A small grey mouse lived in the old mill, and the small grey mouse was happy."


def test_the_first_look_shows_a_sentence_already_read(reader):
    reader.open()
    assert reader.page.title().startswith("Headlight")
    assert reader.page.input_value("#text") != ""
    assert "tokens of at most" in reader.page.locator("#status").text_content()
    assert reader.chosen_head is not None
    assert "attends most to" in reader.readout


def test_typing_shows_the_tokens_the_model_reads(reader, ask):
    reader.open()
    reader.write(TEXT)
    tokens = ask("tokenize", text=TEXT)["tokens"]
    assert reader.chips == [token["text"].replace(" ", "·") for token in tokens]
    assert reader.page.locator(".chip.is-special").all_text_contents() == ["<s>"]


def test_an_example_fills_the_box_and_is_read(reader):
    reader.open()
    before = reader.chips
    button = reader.page.locator("#examples button").nth(1)
    button.click()
    expect(reader.page.locator(".chip")).not_to_have_text(before)
    assert reader.page.input_value("#text") == button.get_attribute("title")
    assert (
        reader.page.locator("#examples [aria-pressed=true]").text_content() == button.text_content()
    )


def test_enter_reads_at_once_and_shift_enter_starts_a_line(reader):
    reader.open()
    box = reader.page.locator("#text")
    box.fill("One line")
    box.press("Shift+Enter")
    box.press_sequentially("two lines")
    with reader.page.expect_response("**/api/v1/trace"):
        box.press("Enter")
    reader.wait_until_drawn()
    assert box.input_value() == "One line\ntwo lines"
    assert any("↵" in chip for chip in reader.chips)


def test_while_the_answer_is_on_its_way_the_page_says_so(reader, hold):
    reader.open()
    held = hold(reader.page, "waiting")
    reader.page.fill("#text", "We are waiting here")
    reader.page.wait_for_selector("#main[aria-busy=true]")
    assert reader.page.locator("#status").text_content() == "Reading…"
    assert reader.page.locator("#beam").is_visible()
    held[0].continue_()
    reader.wait_until_drawn()
    assert not reader.page.locator("#beam").is_visible()
    assert "·waiting" in reader.chips


def test_typing_again_cancels_the_request_before(reader, hold):
    reader.open()
    held = hold(reader.page, "never")
    failed = []
    reader.page.on(
        "requestfailed",
        lambda request: failed.append((request.post_data_json["text"], request.failure)),
    )
    reader.page.fill("#text", "This will never be answered")
    reader.page.wait_for_selector("#main[aria-busy=true]")
    assert len(held) == 1
    reader.write("This is answered")
    assert failed == [("This will never be answered", "net::ERR_ABORTED")]
    assert "·answered" in reader.chips
    assert "·never" not in reader.chips


def test_an_empty_box_says_that_there_is_nothing_to_read(reader):
    reader.open()
    reader.page.fill("#text", "   ")
    reader.page.wait_for_selector("#empty", state="visible")
    assert "Type a sentence" in reader.page.locator("#empty").text_content()
    assert not reader.page.locator("#results").is_visible()
    reader.write("Something again")
    assert reader.page.locator("#results").is_visible()


def test_a_refusal_is_told_in_words_with_what_to_do(visit):
    reader = visit(allow="status of 4")
    reader.open()
    reader.page.fill("#text", "too many words " * 400)
    notice = reader.page.locator("#notice")
    notice.wait_for()
    assert notice.locator(".notice-title").text_content() != ""
    assert "more than the 4,000 that are allowed; send a shorter text" in notice.text_content()
    assert not reader.page.locator("#results").is_visible()
    reader.write("Short again")
    assert not notice.is_visible()
    assert reader.page.locator("#results").is_visible()


def test_a_server_that_is_gone_is_told_and_can_be_tried_again(visit):
    reader = visit(allow="ERR_CONNECTION_REFUSED|ERR_FAILED")
    reader.open()
    reader.page.route("**/api/v1/trace", lambda route: route.abort("connectionrefused"))
    reader.page.fill("#text", "Is anybody there")
    notice = reader.page.locator("#notice")
    notice.wait_for()
    assert "did not answer" in notice.text_content()
    reader.page.unroute("**/api/v1/trace")
    notice.get_by_role("button", name="Try again").click()
    reader.page.wait_for_selector("#results", state="visible")
    reader.wait_until_drawn()
    assert "·anybody" in "".join(reader.chips)


def test_a_view_that_throws_names_itself_and_the_others_go_on(reader):
    def broken(route):
        answer = route.fetch()
        body = answer.text().replace(
            "function figure(trace, state) {",
            "function figure() { throw new Error('out of oil');",
            1,
        )
        route.fulfill(response=answer, body=body)

    reader.page.route("**/views/positions.js", broken)
    reader.open(view="positions")
    notices = reader.view.locator(".panel-notice").all_text_contents()
    assert notices
    assert set(notices) == {"The view “Positions” failed: out of oil"}
    reader.choose_view("Attention")
    assert "attends most to" in reader.readout


def test_without_plotly_the_page_says_so_and_the_table_still_holds_the_numbers(visit):
    reader = visit(allow="ERR_FAILED")
    reader.page.route("**/plotly.min.js*", lambda route: route.abort())
    reader.page.goto(reader.url)
    notice = reader.view.locator(".panel-notice")
    notice.wait_for()
    assert "Plotly did not load" in notice.text_content()
    assert reader.table()[1][1] == "1.0000"


@pytest.mark.parametrize(
    "text",
    [
        "<s>",
        "<b>x</b> & &lt;i&gt;",
        "مرحبا بالعالم",
        "👩‍🚀 naïve 中文",
        "\u202eevil\u200b",
        "2024 2024-01-01 1e5",
    ],
)
def test_any_text_is_shown_as_text(reader, ask, text):
    reader.open(text=text)
    tokens = ask("tokenize", text=text)["tokens"]
    assert len(reader.chips) == len(tokens)
    labels = reader.view.locator(".ytick text").all_text_contents()
    assert labels[0] == "<s>"
    assert len(labels) == len(tokens)
    assert reader.page.locator("#chips :is(b, i, s, a), .ytick :is(a, b, i)").count() == 0
    assert reader.page.locator("#chips").get_attribute("dir") == ("rtl" if "م" in text else "ltr")
    assert not any("\u202e" in chip or "\u200b" in chip for chip in reader.chips)
