"""The sentence: typed, chosen from the examples, read, cancelled; and the menu of models."""

from playwright.sync_api import expect


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
    assert any("line break" in chip for chip in reader.chips)


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


def test_further_answers_of_a_view_can_be_cancelled_too(reader):
    reader.open(text="Once upon a time", view="stream")
    page = reader.page
    page.wait_for_selector("#main[aria-busy=false]")
    held = []
    page.route("**/api/v1/trace", lambda route: held.append(route))
    page.evaluate("location.hash = location.hash.replace('view=stream', 'view=compare')")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#main")).to_have_attribute("aria-busy", "false")
    assert "Cancelled" in reader.view.text_content()
    page.unroute_all(behavior="ignoreErrors")
    reader.choose_view("attention")
    with page.expect_response("**/api/v1/trace"):
        reader.choose_view("compare")


def press(reader, title):
    if reader.page.get_by_role("button", name="Examples", exact=True).is_visible():
        reader.page.get_by_role("button", name="Examples", exact=True).click()
    with reader.reading_again():
        reader.page.locator("#examples button", has_text=title).click()


def test_an_example_opens_the_view_the_head_and_the_token(reader):
    reader.open(text="Something else", view="experts", layer=0, head=0)
    press(reader, "A verb and its subject")
    assert reader.view.get_attribute("id") == "view-attention"
    assert reader.chosen_head == "Layer 3, head 3"
    assert reader.readout.startswith("“et” attends most to “s”")


def test_of_examples_with_one_text_the_one_that_was_pressed_is_marked(reader):
    reader.open(model="sums")
    pressed = reader.page.locator("#examples button[aria-pressed=true]")
    expect(pressed).to_have_count(1)
    second = reader.page.locator("#examples button").nth(1)
    assert second.get_attribute("data-text") == pressed.get_attribute("data-text")
    second.click()
    expect(pressed).to_have_text(second.text_content())


def test_an_example_that_was_left_leads_back_when_it_is_pressed_again(reader):
    reader.open()
    press(reader, "An expert for commas and stops")
    assert reader.view.get_attribute("id") == "view-experts"
    reader.choose_view("positions")
    reader.page.locator("#examples button", has_text="An expert for commas and stops").click()
    reader.wait_until_drawn()
    assert reader.view.get_attribute("id") == "view-experts"
