"""A model that sees both ways: a click masks a word, another brings it back."""

import re

import pytest

TEXT = "the cat sat on the mat"
MASKED = "the [MASK] sat on the mat"


@pytest.fixture
def filling(reader):
    reader.open(model="blanks", text=TEXT, layer=0, head=0)
    return reader


def press_word(reader, word):
    with reader.reading_again():
        reader.page.locator("#chips .chip", has_text=re.compile(f"^·?{re.escape(word)}$")).click()


def test_clicking_a_word_masks_it_and_clicking_the_mask_brings_it_back(filling):
    press_word(filling, "cat")
    assert filling.page.input_value("#text") == MASKED
    assert "[MASK]" in filling.chips
    assert filling.page.locator(".chip[aria-selected=true]").text_content() == "[MASK]"
    press_word(filling, "[MASK]")
    assert filling.page.input_value("#text") == TEXT


def test_the_keyboard_walks_the_words_and_enter_masks_them(filling):
    filling.page.locator(".chip[aria-selected=true]").focus()
    filling.page.keyboard.press("Home")
    filling.page.keyboard.press("ArrowRight")
    filling.page.keyboard.press("ArrowRight")
    word = filling.page.evaluate("document.activeElement.textContent").strip("·")
    assert filling.page.input_value("#text") == TEXT, "walking changes nothing"
    with filling.reading_again():
        filling.page.keyboard.press("Enter")
    assert filling.page.input_value("#text") == TEXT.replace(word, "[MASK]", 1)
    assert filling.page.evaluate("document.activeElement.textContent") == "[MASK]"
    with filling.reading_again():
        filling.page.keyboard.press("Enter")
    assert filling.page.input_value("#text") == TEXT


def test_a_guess_can_be_put_in_the_place_of_the_mask(reader, ask):
    reader.open(model="blanks", text=MASKED, view="next_token")
    told = ask("trace", model="blanks", text=MASKED, capture=[], analyses=["next_token"])
    mask = next(i for i, token in enumerate(told["tokens"]) if token["text"] == "[MASK]")
    texts = told["analyses"]["next_token"]["texts"][mask][:12]
    piece = next(text for text in texts if re.fullmatch(r" ?[a-z]+", text))
    reader.view.locator(".plot").focus()
    for _ in range(texts.index(piece)):
        reader.page.keyboard.press("ArrowDown")
    with reader.reading_again():
        reader.page.keyboard.press("Enter")
    assert reader.page.input_value("#text") == MASKED.replace(" [MASK]", piece)
