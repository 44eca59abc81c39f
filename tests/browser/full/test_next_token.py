"""Next tokens: what may follow the chosen one, and how likely it is."""

import re

TEXT = "Once upon a time there was a little"


def test_the_next_token_is_that_of_the_chosen_position(reader, ask):
    reader.open(text=TEXT, view="next_token")
    reader.page.locator(".chip").nth(2).click()
    reader.wait_until_drawn()
    assert reader.readout.startswith("After “upon”, ")
    guesses = ask("trace", text=TEXT, capture=[], analyses=["next_token"])["analyses"]["next_token"]
    first = guesses["probabilities"]["data"][2][0]
    assert (
        reader.view.locator(".bars .bartext")
        .first.text_content()
        .startswith(f"{100 * first:.1f} %")
    )


def test_a_likely_continuation_can_be_added_by_keyboard(reader, ask):
    reader.open(text=TEXT, view="next_token")
    guesses = ask("trace", text=TEXT, capture=[], analyses=["next_token"])["analyses"]["next_token"]
    piece = next(text for text in guesses["texts"][-1] if re.fullmatch(r" [a-z]+", text))
    reader.view.locator(".plot").focus()
    for _ in range(guesses["texts"][-1].index(piece)):
        reader.page.keyboard.press("ArrowDown")
    assert f"“{piece.strip()}” has probability" in reader.announced
    with reader.page.expect_response("**/api/v1/trace"):
        reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert reader.page.input_value("#text") == TEXT + piece
    assert reader.chips[-1] == piece.replace(" ", "·")
