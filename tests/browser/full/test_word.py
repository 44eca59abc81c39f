"""Why this word: the parts of a logit difference, chosen by pointer and by keyboard."""

import pytest

TEXT = "The king saw the old man. The king"


@pytest.fixture
def explained(ask):
    """The attribution that the API gives for a position."""

    def run(position, **choice):
        asked = {"position": position, **choice}
        found = ask(
            "trace",
            text=TEXT,
            capture=[],
            analyses=["logit_attribution"],
            logit_difference=asked,
        )
        return found["analyses"]["logit_attribution"]

    return run


def test_the_bars_are_those_of_the_api_for_the_chosen_token(reader, explained):
    reader.open(text=TEXT, view="word")
    reader.page.locator(".chip").nth(3).click()
    reader.wait_until_drawn()
    parts = explained(3)["parts"]["data"]
    shown = reader.view.locator(".bars .bartext").all_text_contents()
    for text, part in zip(shown, parts[:-1], strict=False):
        if abs(part) < 0.005:  # too small for two digits
            assert text.endswith("0.01")
        else:
            assert text.replace("−", "-") == f"{part:+.2f}"
    assert shown[len(parts) - 1] == "0"


def test_another_token_to_compare_with_stands_in_the_link(reader, explained):
    reader.open(text=TEXT, view="word")
    before = reader.view.locator(".bars .bartext").all_text_contents()
    reader.view.get_by_label("rather than").select_option(index=3)
    reader.wait_until_drawn()
    assert reader.view.locator(".bars .bartext").all_text_contents() != before
    assert "word_against=" in reader.page.url


def test_a_head_opens_from_the_keyboard(reader):
    reader.open(text=TEXT, view="word")
    reader.view.locator(".plot").nth(1).focus()
    reader.page.keyboard.press("Home")
    assert "logits for" in reader.announced
    # The bar of all smaller heads opens nothing.
    if " together" in reader.announced:
        reader.page.keyboard.press("ArrowUp")
    reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert "view=word" not in reader.page.url
    assert "layer=" in reader.page.url
