"""Why this word: the parts of a logit difference, chosen by pointer and by keyboard."""

import re

TEXT = "The king saw the old man. The king"


def test_another_token_is_explained_and_another_to_compare_with_stands_in_the_link(reader):
    reader.open(text=TEXT, view="word")
    bars = reader.view.locator(".bars .bartext")
    seen = [bars.all_text_contents()]
    reader.page.locator(".chip").nth(3).click()
    reader.wait_until_drawn()
    seen.append(bars.all_text_contents())
    reader.view.get_by_label("rather than").select_option(index=3)
    reader.wait_until_drawn()
    seen.append(bars.all_text_contents())
    assert seen[0] != seen[1] != seen[2]
    assert re.search(r"[#&]against=", reader.page.url)


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
