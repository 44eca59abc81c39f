"""A Hugging Face checkpoint on the page: chosen, loaded, drawn, with its badge."""

from playwright.sync_api import expect

from tests.browser.foreign_server import TEXT, check_view, foreign_reader

foreign = foreign_reader(["mixtral"])


def test_a_chosen_model_is_loaded_shows_how_exact_it_is_and_is_drawn(foreign):
    foreign.open(text=TEXT)
    page = foreign.page
    assert page.locator("#model option", has_text="headlight add").count() == 1
    assert not page.locator("#exact").is_visible()
    page.select_option("#model", "mixtral")
    badge = page.locator("#exact")
    badge.wait_for(state="visible")
    assert badge.text_content() == "Matches Hugging Face exactly"
    foreign.wait_until_plotted()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    for fact in ("MixtralForCausalLM", "Positionsrotary", "4 in layers 0"):
        expect(page.locator("#card")).to_contain_text(fact)
    page.evaluate("scrollTo(0, 0)")
    for view in ("attention", "experts"):
        check_view(foreign, "mixtral", view)
