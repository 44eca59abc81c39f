"""The view Alignment: words of two sentences with lines between them, and an own translation."""

import pytest
from playwright.sync_api import expect

TEXT = "the cat sat on the mat"
OWN = "le chat dort"
LINK = {"model": "pairs", "text": TEXT, "view": "translate"}


@pytest.fixture
def alignment(ask):
    """Return the API's alignment of two texts."""

    def align(**body):
        answer = ask("trace", **{"model": "pairs", "text": TEXT, **body}, analyses=["alignment"])
        weights = answer["analyses"]["alignment"]["weights"]["data"]
        return answer, weights

    return align


def words(reader, panel=0):
    """Return the words in the two columns."""
    return reader.view.locator(".plot").nth(panel).locator(".textpoint text").all_text_contents()


def drawn(reader):
    """Wait for both drawings."""
    reader.view.locator(".plot .nsewdrag").nth(1).wait_for(state="attached")
    reader.wait_until_drawn()


@pytest.fixture
def shown(reader):
    reader.open(**LINK, target=OWN)
    drawn(reader)
    return reader


def strongest(numbers):
    return max(range(len(numbers)), key=numbers.__getitem__)


def test_pointing_at_a_word_brings_out_its_lines(shown, alignment):
    _, weights = alignment(target=OWN)
    seen = shown.view.locator(".plot").first.locator(".textpoint text", has_text="chat")
    box = seen.bounding_box()
    shown.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    highlight = shown.view.locator(".plot-highlight.is-shown")
    highlight.wait_for()
    assert highlight.locator("line").count() == sum(weight > 0 for weight in weights[1])
    best = strongest(weights[1])
    assert highlight.locator("text.is-strong").text_content() == f"{weights[1][best]:.2f}"
    assert shown.readout.startswith("“chat” attends to")
    assert "is-query" in shown.page.locator("#target-chips .chip", has_text="chat").get_attribute(
        "class"
    )
    shown.page.mouse.move(0, 0)
    assert shown.view.locator(".plot-highlight.is-shown").count() == 0


def test_every_pair_of_words_is_reached_and_read_by_keyboard(shown, alignment):
    _, weights = alignment(target=OWN)
    plot = shown.view.locator(".plot").first
    plot.focus()
    shown.page.keyboard.press("Control+Home")
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("ArrowRight")
    assert shown.announced.startswith(f"“chat” attends to “sat” with weight {weights[1][2]:.3f}")
    assert shown.tip().startswith("“sat” — “chat”")
    shown.page.keyboard.press("Enter")
    assert "query=2" in shown.fragment
    shown.page.keyboard.press("Enter")
    assert "query=" not in shown.fragment


def test_ones_own_translation_stays_when_the_sentence_changes_and_the_page_says_so(shown):
    note = shown.page.locator("#stale")
    assert note.text_content() == ""
    shown.write("the cat sat")
    assert shown.page.input_value("#target") == OWN
    assert "The sentence has changed" in note.text_content()
    assert note.is_visible()
    shown.write(TEXT)
    assert note.text_content() == ""
    shown.write("the mat")
    with shown.reading_again():
        shown.page.fill("#target", "le tapis")
    expect(note).to_have_text("")  # it is written for this sentence
    shown.write("a mat")
    with shown.reading_again():
        shown.page.get_by_role("button", name="Back to the model’s", exact=True).click()
    assert note.text_content() == ""
