"""The question marks: what they say, and that everybody can reach them."""

TEXT = "Once upon a time there was a little fox."


def test_the_switches_are_explained_by_a_key_and_escape_goes_back(reader):
    reader.open(text=TEXT)
    switches = reader.view.locator(".controls-more")
    switches.locator("summary").click()
    button = switches.get_by_role("button", name="What the switches do")
    button.focus()
    reader.page.keyboard.press("Enter")
    box = reader.view.locator(".help-box.is-placed")
    box.wait_for()
    assert box.get_by_text("Rollout", exact=True).is_visible()
    assert box.get_by_text("Attention through all layers up to this one (rollout)").is_visible()
    assert "help-box" in reader.page.evaluate("document.activeElement.className")
    reader.page.keyboard.press("Escape")
    assert not reader.page.locator(".help-box.is-placed").is_visible()
    assert reader.page.evaluate("document.activeElement.className") == "help-button"


def test_the_labels_of_heads_are_explained_by_a_press(reader):
    reader.open(text=TEXT)
    reader.view.get_by_role("button", name="Labels of heads").click()
    box = reader.view.locator(".help-box.is-placed")
    box.wait_for()
    assert "Induction" in box.locator("dt").all_text_contents()
    reader.page.mouse.click(5, 5)
    assert not reader.page.locator(".help-box.is-placed").is_visible()
