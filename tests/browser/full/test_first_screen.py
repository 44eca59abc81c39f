"""The first screen, and what the page does on its own until somebody chooses."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import plain

SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries())
      if (!hadRecentInput) window.shifted += value;
  }).observe({ type: 'layout-shift' });
}"""
REPEATED = "The tall man met Mary Brown at the gate. In the evening the man called Mary"


def top_of(reader, selector):
    return reader.page.locator(selector).first.bounding_box()["y"]


def test_at_a_desk_scene_map_and_drawing_are_on_the_first_screen(visit):
    reader = visit(width=1440, height=900)
    reader.open()
    expect(reader.page.locator("#says")).to_contain_text("keys")
    assert top_of(reader, "#text") < top_of(reader, "#says") < 240
    assert bottom_of(reader, "#switch") < 400
    assert bottom_of(reader, "#next") < 400
    assert bottom_of(reader, "#map") < 900
    assert top_of(reader, ".view:not([hidden]) .plot") < 700
    expect(reader.page.locator("#insight")).to_be_visible()


def test_on_a_phone_the_whole_finding_is_on_the_first_screen_and_the_map_in_sight(visit):
    reader = visit(width=390, height=844, has_touch=True)
    reader.open()
    expect(reader.page.locator("#says")).to_contain_text("keys")
    bar = reader.page.locator("#map").bounding_box()
    for part in ("#switch", "#next", "#examples"):
        assert bottom_of(reader, part) < bar["y"]
    assert bottom_of(reader, "#next") <= top_of(reader, "#status")
    assert bar["y"] + bar["height"] <= 844
    reader.page.mouse.wheel(0, 900)
    expect(reader.page.locator("#map")).to_be_in_viewport(ratio=1)


def bottom_of(reader, selector):
    box = reader.page.locator(selector).first.bounding_box()
    return box["y"] + box["height"]


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_jumps_over_twenty_keystrokes(visit, width):
    reader = visit(width=width)
    reader.open()
    reader.page.evaluate(SHIFTS)
    reader.page.focus("#text")
    reader.page.keyboard.press("End")
    for letter in " the old grey river “":
        reader.page.keyboard.type(letter)
        reader.page.wait_for_timeout(300)
    reader.wait_until_drawn()
    badge = reader.page.locator("#reads")
    assert badge.text_content() == 'reads “ as "'
    if width > 1000:
        ends = reader.page.locator("#examples").bounding_box()
        assert badge.bounding_box()["x"] >= ends["x"] + ends["width"]
    assert reader.page.evaluate("window.shifted") <= 0.005


def test_each_text_of_ones_own_opens_a_telling_head_until_one_is_chosen(visit):
    reader = visit()
    reader.open()
    reader.write(REPEATED)
    first = reader.chosen_head
    assert "<s>" not in reader.page.locator("#insight").text_content()
    reader.page.locator(".heads-cell[aria-label^='Layer 0, head 1']").click()
    reader.write("The old king gave his “golden” ring to the girl’s mother.")
    assert reader.chosen_head == "Layer 0, head 1"
    assert first != "Layer 0, head 1"


def test_another_model_brings_its_own_example_but_an_edited_text_stays(visit):
    reader = visit()
    reader.open()
    before = reader.page.input_value("#text")
    with reader.reading_again():
        reader.page.select_option("#model", "fill")
    assert reader.page.input_value("#text") != before
    assert "[MASK]" in reader.page.input_value("#text")
    edited = "The cat [MASK] on the mat."
    reader.write(edited)
    with reader.reading_again():
        reader.page.select_option("#model", "stories")
    assert reader.page.input_value("#text") == edited
    assert "no masks" in reader.page.locator("#text-note").text_content()


def test_keys_walk_through_heads_and_layers_and_one_lists_them(reader):
    reader.open(text="The fox saw the hen.", layer=1, head=5)
    page = reader.page
    page.keyboard.press("l")
    reader.wait_until_drawn()
    assert reader.chosen_head == "Layer 1, head 0"
    page.keyboard.press("k")
    reader.wait_until_drawn()
    assert reader.chosen_head == "Layer 0, head 0"
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    for key in ("h", "Shift + Enter", "+", "Esc"):
        expect(
            dialog.locator("kbd", has_text=re.compile(rf"^{re.escape(key)}$")).first
        ).to_be_visible()
    dialog.get_by_label("Letters act as keys").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.keyboard.press("j")
    reader.wait_until_drawn()
    assert reader.chosen_head == "Layer 0, head 0"
    page.focus("#text")
    page.keyboard.press("End")
    page.keyboard.type("?")
    assert page.input_value("#text").endswith("?")


def test_a_button_that_changes_the_view_brings_it_into_sight(visit):
    reader = visit(width=390, height=844)
    reader.open(text="The fox saw the hen.", layer=0, head=0)
    button = reader.view.get_by_role("button", name="Why 0")
    button.scroll_into_view_if_needed()
    button.click()
    reader.wait_until_drawn()
    heading = reader.page.locator("#title-why")
    expect(heading).to_be_focused()
    expect(reader.view.locator(".panel h2").first).to_be_in_viewport()


KEYS = "The keys to the cabinet"
NUMBER = "#next .bar.is-chosen .bar-number"
# The controls on the screen but the heads: buttons, links and fields.
CONTROLS = """() => [...document.querySelectorAll(
  'button, a[href], input, select, textarea, summary')].filter((node) => {
    const { top, bottom, left, right, width } = node.getBoundingClientRect();
    return !node.matches('.is-head, .layer-head') && width > 1
      && node.checkVisibility({ visibilityProperty: true, opacityProperty: true })
      && bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
  }).map((node) => node.ariaLabel || node.textContent || node.id)"""
WORDS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const words = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const { top, bottom, width } = node.getBoundingClientRect();
    const isSeen = node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    if (isSeen && !node.closest('script, style, noscript, .unseen') && width > 2 && bottom > 0
      && top < innerHeight)
      words.push(...(walker.currentNode.data.match(/\\S*[\\p{L}\\p{N}%]\\S*/gu) ?? []));
  }
  return words;
}"""
SMALL_TEXTS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const small = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const isSeen = walker.currentNode.data.trim() && !node.closest('script, style, noscript')
      && node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    if (isSeen && parseFloat(getComputedStyle(node).fontSize) < 12)
      small.push(walker.currentNode.data);
  }
  return small;
}"""


FONT_SIZE = "(node) => parseFloat(getComputedStyle(node).fontSize)"


def next_words(reader):
    """Return the row of next words: the likelihood of each in percent, as it is written."""
    words = reader.page.locator("#next .bar").evaluate_all(
        """(words) => words.map((word) => ['.bar-name', '.bar-number'].map(
          (part) => word.querySelector(part).textContent))"""
    )
    return {name.strip(): float(number.split()[0]) for name, number in words}


def likeliest(ask, **edited):
    """Return the likeliest next words that the API answers, in percent."""
    options = {"analyses": ["next_token"], "predictions": {"top": 200}}
    answer = ask("trace", text=KEYS, capture=[], **options, **edited)
    prediction = answer["analyses"]["next_token"]
    percents = [100 * each for each in prediction["probabilities"]["data"][-1]]
    return dict(zip(map(str.strip, prediction["texts"][-1]), percents, strict=True))


def agree(shown, computed):
    """Check that the row on the page has the numbers of the API, rounded."""
    for word, percent in shown.items():
        assert percent == pytest.approx(computed[word], abs=0.6 if percent >= 10 else 0.06)


def wait_until_moved(reader, before):
    expect(reader.page.locator(NUMBER)).not_to_have_text(before)
    expect(reader.page.locator("#finding")).not_to_have_class(re.compile("is-waiting"))


def chosen_number(reader):
    return reader.page.locator(NUMBER).text_content()


def test_the_page_opens_on_a_finding_and_the_words_that_may_come_next(visit, ask):
    reader = visit()
    reader.open()
    page = reader.page
    assert page.input_value("#text") == KEYS
    says = page.locator("#says")
    expect(says).to_contain_text("layer 3, head 3 reads it")
    assert "looks back at “keys”" in plain(says.text_content())
    assert says.evaluate("(node) => parseFloat(getComputedStyle(node).fontSize)") >= 20
    assert (
        page.locator("#text").evaluate("(box) => parseFloat(getComputedStyle(box).fontSize)") > 40
    )
    row, computed = next_words(reader), likeliest(ask)
    agree(row, computed)
    assert list(row)[:3] == list(computed)[:3]
    assert len(row) >= 3
    assert page.locator("#hero .slot-word").text_content().strip() == next(iter(row))


def test_a_chosen_word_has_another_finding_and_other_colours_on_the_map(reader):
    reader.open()
    page = reader.page
    head, key = page.locator("#map .is-head").last, page.locator(".map-key")
    expect(page.locator("#next-label")).to_contain_text("against")
    before = page.locator("#says").text_content()
    tint = head.evaluate("(node) => node.style.getPropertyValue('--tint')")
    other = page.locator("#next .bar-name").nth(1)
    name = other.text_content().strip()
    expect(key).not_to_contain_text(f"for “{name}”")
    other.click()
    expect(other).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#says")).not_to_have_text(before)
    assert f"To choose “{name}”" in plain(page.locator("#says").text_content())
    expect(key).to_contain_text(f"for “{name}”")
    assert head.evaluate("(node) => node.style.getPropertyValue('--tint')") != tint
    assert "token=" in reader.fragment


def test_an_opened_head_says_what_it_reads_and_what_happens_without_it(reader, ask):
    reader.open(text=KEYS, layer=3, head=5)
    said = reader.page.locator("#says")
    expect(said).to_contain_text("Layer 3, head 5 reads")
    off = {"kind": "heads_off", "heads": [5], "layer": 3, "where": "decoder"}
    (first, before), after = next(iter(likeliest(ask).items())), likeliest(ask, edits=[off])
    told = plain(said.text_content())
    assert f"it changes little: “{first}” keeps" in told
    assert before == pytest.approx(after[first], rel=0.05)
    percent = re.search(r"keeps ([\d.]+)\s%", told)[1]
    assert float(percent) == pytest.approx(after[first], abs=0.6)


def test_a_head_switched_off_moves_the_row_as_the_api_answers_and_the_link_keeps_it(visit, ask):
    reader = visit()
    reader.open()
    head = reader.page.locator('#map [data-part="head decoder 3 3"]')
    switch = reader.page.locator("#switch")
    switch.wait_for()
    expect(switch).to_have_text("Head 3.3")
    row, before = next_words(reader), chosen_number(reader)
    switch.click()
    wait_until_moved(reader, before)
    off = {"kind": "heads_off", "heads": [3], "layer": 3, "where": "decoder"}
    computed = likeliest(ask, edits=[off])
    moved = next_words(reader)
    agree(moved, computed)
    assert moved["were"] < row["were"] / 2
    expect(head).to_have_class(re.compile("is-off"))
    reader.page.reload()
    reader.wait_until_drawn()
    wait_until_moved(reader, before)
    assert next_words(reader) == moved, "the link restores it"
    expect(head).to_have_class(re.compile("is-off"))
    switch.focus()
    reader.page.keyboard.press("Enter")
    expect(reader.page.locator(NUMBER)).to_have_text(before)
    assert next_words(reader) == row
    expect(head).not_to_have_class(re.compile("is-off"))


def test_a_weight_set_by_hand_moves_the_row_with_the_rest_scaled_or_left(reader, ask):
    reader.open(view="why", layer=3, head=3)
    site = "decoder.layers.3.self_attention.weights"
    weights = ask("trace", text=KEYS, capture=[site])["tensors"][site]["data"][3][-1]
    key = max(range(len(weights)), key=weights.__getitem__)

    def computed(rest):
        row = [0.1 if at == key else weight * rest for at, weight in enumerate(weights)]
        edit = {"kind": "set", "site": site, "heads": [3], "positions": [len(row) - 1]}
        return likeliest(ask, edits=[{**edit, "value": row}])

    typed = reader.view.get_by_role("spinbutton", name=re.compile("weight"))
    assert float(typed.input_value()) == pytest.approx(weights[key], abs=6e-4)
    before = chosen_number(reader)
    typed.fill("0.1")
    typed.press("Enter")
    wait_until_moved(reader, before)
    agree(next_words(reader), computed((1 - 0.1) / (sum(weights) - weights[key])))
    scaled = chosen_number(reader)
    reader.view.get_by_role("checkbox", name=re.compile("rest of the row")).check()
    wait_until_moved(reader, scaled)
    agree(next_words(reader), computed(1))
    reader.page.locator("#says-act").get_by_role("button", name="Put it back").click()
    expect(reader.page.locator(NUMBER)).to_have_text(before)


@pytest.mark.parametrize(("width", "height", "most"), [(1440, 900, 40), (390, 844, 25)])
def test_the_first_screen_has_few_controls_and_words(visit, width, height, most):
    reader = visit(width=width, height=height)
    for state in ({}, {"text": REPEATED}, {"text": "Der Hund, den die Katze sah,"}):
        reader.open(**state)
        reader.page.locator("#switch").wait_for()
        controls = reader.page.evaluate(CONTROLS)
        assert len(controls) <= most, controls
        words = reader.page.evaluate(WORDS)
        assert 80 < len(words) <= 200, words
        assert reader.page.evaluate(SMALL_TEXTS) == []


def test_no_view_has_text_under_twelve_pixels(reader, views):
    small = {}
    for view in views:
        reader.open_view(view)
        small[view] = reader.page.evaluate(SMALL_TEXTS)
    assert {view: texts for view, texts in small.items() if texts} == {}
