"""One head: its profile, and the circuits of its weights, by pointer and by keyboard."""

TEXT = "Mary saw the old king. Then Mary"


def bars(reader, panel):
    """Return the numbers of a bar chart."""
    return reader.view.locator(".panel").nth(panel).locator(".bartext").all_text_contents()


def test_a_chosen_key_and_a_chosen_query_have_circuits_of_their_own(reader):
    reader.open(text=TEXT, view="head", layer=1, head=4)
    written, sought = bars(reader, 1), bars(reader, 2)
    reader.page.locator(".chip").nth(5).click()
    reader.wait_until_drawn()
    reader.view.get_by_label("Attending to").select_option("2")
    reader.wait_until_drawn()
    assert bars(reader, 1) != written
    assert bars(reader, 2) != sought
    assert "key=2" in reader.page.url


def test_the_keyboard_walks_through_what_a_head_writes_and_to_the_next_head(reader):
    reader.open(text=TEXT, view="head", layer=1, head=4)
    reader.view.locator(".plot").nth(1).focus()
    reader.page.keyboard.press("Home")
    assert "the head adds" in reader.announced
    before = bars(reader, 1)
    reader.page.keyboard.press("l")
    reader.wait_until_drawn()
    assert "head=5" in reader.page.url
    assert bars(reader, 1) != before
