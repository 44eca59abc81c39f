"""A text is typed, read, refused; any characters are shown as text."""

import re

from playwright.sync_api import expect

TYPE_AND_CLICK = """() => {
    const box = document.querySelector("#text");
    box.value += "typed just before";
    box.dispatchEvent(new Event("input", { bubbles: true }));
    const button = document.querySelector("#notice button");
    button.focus();
    button.click();
}"""
EMOJI = "👩\u200d🚀"


def test_the_first_look_shows_a_sentence_already_read(reader):
    reader.page.goto("about:blank")
    reader.open()
    assert reader.page.input_value("#text") != ""
    assert len(reader.chips) > 3
    assert reader.chosen_head
    assert reader.readout


def test_typing_shows_the_tokens_that_the_model_reads(reader, ask):
    reader.open(text="At first")
    reader.write("A small grey mouse lived in the old mill.")
    tokens = ask("tokenize", text="A small grey mouse lived in the old mill.")["tokens"]
    assert reader.chips == [token["text"].replace(" ", "·") for token in tokens]
    assert "text=A+small+grey+mouse" in reader.fragment


def test_an_example_fills_the_box_and_is_read(reader):
    reader.open(text="At first")
    reader.page.get_by_role("button", name="Examples", exact=True).click()
    button = reader.page.locator("#examples button").nth(1)
    with reader.reading_again():
        button.click()
    assert reader.page.input_value("#text") == button.get_attribute("data-text")
    assert button.get_attribute("aria-pressed") == "true"


def test_an_empty_box_leaves_nothing_to_read(reader):
    reader.open(text="At first")
    reader.page.fill("#text", "   ")
    reader.page.wait_for_selector("#empty", state="visible")
    assert not reader.page.locator("#results").is_visible()
    reader.write("Something again")
    assert reader.page.locator("#results").is_visible()


def test_a_huge_text_is_refused_with_a_way_out(visit):
    reader = visit(allow="status of 4")
    reader.open(text="At first")
    whole = "too many words " * 700
    tokenize = "**/api/v1/tokenize"
    reader.page.route(tokenize, lambda _: None)  # it is told while what fits is not yet known
    reader.page.fill("#text", whole)
    notice = reader.page.locator("#notice")
    notice.wait_for()
    assert "8,000" in notice.text_content()
    assert reader.page.locator("#results").is_visible()
    assert "resolution" not in notice.inner_text(), "a member of the API"
    reader.page.unroute(tokenize)
    whole += "at last "
    reader.page.fill("#text", whole)
    beginning = notice.get_by_role("button", name=re.compile(r"Read the first \d+ tokens"))
    surplus_mark = reader.page.locator("#surplus mark")
    expect(surplus_mark).to_contain_text("at last")  # the offer is that of the second text
    assert "resolution" not in notice.inner_text(), "a member of the API"
    count = int(re.search(r"\d+", beginning.text_content()).group())
    surplus = surplus_mark.text_content()
    reader.page.evaluate(TYPE_AND_CLICK)  # within the pause in which typing is not yet read
    assert reader.page.input_value("#text") + surplus == whole
    reader.wait_until_drawn()
    assert not notice.is_visible()
    assert len(reader.chips) == count + 1  # the start of the text
    reader.page.get_by_role("button", name="Put it back").click()
    notice.wait_for()
    assert reader.page.input_value("#text") == whole
    reader.write("Short again")
    assert not notice.is_visible()
    assert reader.page.locator("#results").is_visible()


def test_any_text_is_shown_as_text(reader, ask):
    for text in ("<b>x</b> & </s>", "مرحبا بالعالم", f"{EMOJI} naïve 中文 \u202eevil\u200b"):
        reader.open(text=text)
        assert len(reader.chips) == len(ask("tokenize", text=text)["tokens"])
        assert 0 < reader.view.locator(".ytick text").count() <= len(reader.chips)
        assert reader.page.locator("#chips :is(b, i, s, a), .ytick :is(a, b, i)").count() == 0
        direction = reader.page.locator("#chips").get_attribute("dir")
        assert direction == ("rtl" if "م" in text else "ltr")
        assert not set("".join(reader.chips)) & set("\u202e\u200b")


def test_another_model_keeps_the_text(reader):
    reader.open(text="a little lamp", model="plain")
    for model in ("blanks", "pairs"):
        with reader.reading_again():
            reader.page.select_option("#model", model)
        assert reader.page.input_value("#text") == "a little lamp"
        assert f"model={model}" in reader.fragment
    expect(reader.page.locator("#translation")).to_be_visible()


def test_a_damaged_model_is_named_and_another_can_be_chosen(reader):
    reader.open(text="a little light", model="damaged")
    assert "config.json" in reader.page.locator("#notice").text_content()
    assert reader.page.locator("#model option[value=damaged]").is_disabled()
    with reader.reading_again():
        reader.page.select_option("#model", "plain")
    assert not reader.page.locator("#notice").is_visible()


def test_a_dense_model_is_called_dense_and_draws_no_experts(reader):
    reader.open(text="the cat sat", model="plain", view="experts")
    assert "dense" in reader.view.locator(".panel-notice").text_content()
    assert not reader.view.locator(".plot").is_visible()


def test_a_link_that_points_past_the_model_still_opens(reader):
    reader.open(text="Small", layer=99, head=99, query=99, view="nowhere")
    assert reader.view.get_attribute("id") == "view-attention"
    assert reader.page.locator(".chip[aria-selected=true]").count() == 1


def test_a_link_to_no_view_is_redrawn_before_its_answer(reader, hold):
    page = reader.page
    reader.open(text="A first text")
    held = hold(page, "Another")
    page.evaluate("location.hash = 'text=Another&view=nowhere'")
    page.wait_for_selector("#main[aria-busy=true]")
    reader.choose_theme("Dark")
    reader.choose_theme("System")
    held[0].continue_()
    reader.wait_until_drawn()
    assert reader.view.get_attribute("id") == "view-attention"


def test_going_back_reads_the_text_before(reader):
    reader.open(text="The first text")
    reader.open(text="The second text")
    reader.page.go_back()
    reader.page.locator(".chip", has_text="·first").wait_for()
    assert reader.page.input_value("#text") == "The first text"
