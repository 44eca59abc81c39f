"""A Hugging Face checkpoint on the page: chosen, loaded, drawn, with its badge."""

import pytest

from tests.browser.foreign_server import TEXT, check_view, foreign_reader

foreign = foreign_reader(["mixtral"])


def test_choosing_a_model_loads_it_and_shows_how_exact_it_is(foreign):
    foreign.open(text=TEXT)
    page = foreign.page
    assert page.locator("#model option", has_text="headlight add").count() == 1
    assert not page.locator("#exact").is_visible()
    page.select_option("#model", "mixtral")
    badge = page.locator("#exact")
    badge.wait_for(state="visible")
    assert badge.text_content() == "0.0 from Hugging Face’s own attention"
    foreign.wait_until_plotted()
    assert "MixtralForCausalLM" in page.locator("#card").text_content()
    assert foreign.errors == []


@pytest.mark.parametrize("view", ["attention", "experts"])
def test_a_view_draws_its_numbers(foreign, view):
    check_view(foreign, "mixtral", view)
