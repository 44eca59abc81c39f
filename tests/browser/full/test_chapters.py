"""Every chapter that ships: each step opens, and each question is answered wrong and right."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from headlight.chapters.library import Library
from tests.browser.conftest import SECONDS
from tests.browser.smoke.test_chapter import HEAD, SIZES, wait_for_step, walk

CHAPTERS = [chapter.id for chapter in Library().chapters()[0]]


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("size", SIZES)
def test_a_chapter_is_read_from_its_first_step_to_its_last(visit, size, chapter):
    assert walk(visit(**SIZES[size]), chapter) >= 3


MARKED = (
    HEAD
    + """\
## A cell

```step
opens: {model: stories, text: "the cat sat on the mat", layer: 1, head: 2, query: 3}
highlights: [{query: 3}, {query: 5, key: 2}]
question:
  asks: Which cell?
  by: cell
  answer: {of: strongest_cell}
```

Look.

## A bar

```step
opens: {model: stories, text: "Once upon a time there was a", view: next_token}
question:
  asks: Which token?
  by: bar
  answer: {of: next_token}
```

Look.
"""
)


def drop(reader, text):
    reader.page.evaluate(
        """(text) => {
          const files = new DataTransfer();
          files.items.add(new File([text], 'mine.md', { type: 'text/markdown' }));
          const drop = { dataTransfer: files, bubbles: true, cancelable: true };
          document.body.dispatchEvent(new DragEvent('drop', drop));
        }""",
        text,
    )


def press(page, plot, place):
    """Press a drawing at a share of its plot area."""
    area = plot.locator(".nsewdrag").first.bounding_box()
    page.mouse.click(area["x"] + place[0] * area["width"], area["y"] + place[1] * area["height"])


@pytest.mark.parametrize("size", SIZES)
def test_a_press_on_a_cell_or_a_bar_answers(visit, size):
    reader = visit(**SIZES[size])
    page = reader.page
    reader.open(text="the cat sat")
    drop(reader, MARKED)
    wait_for_step(page, 1)
    form = page.locator(".chapter-question")
    form.locator(".chapter-acts").wait_for(timeout=SECONDS * 1000)
    reader.wait_until_drawn()
    lights = page.locator(".plot-light >> visible=true")
    lights.first.wait_for(timeout=SECONDS * 1000)
    assert lights.count() == 1  # the cell is outlined with the answer
    plot = reader.view.locator(".plot").first
    plot.scroll_into_view_if_needed()
    press(page, plot, (0.05, 0.05))
    assert form.get_attribute("data-result") in ("right", "wrong")
    assert form.get_by_label("Row").input_value() == "0"
    assert form.get_by_label("Column").input_value() == "0"
    page.get_by_role("button", name="Next step", exact=True).click()
    wait_for_step(page, 2)
    form.locator(".chapter-choice").first.wait_for(timeout=SECONDS * 1000)
    reader.wait_until_drawn()
    plot = reader.view.locator(".plot").first
    plot.scroll_into_view_if_needed()
    plot.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert form.get_attribute("data-result") in ("right", "wrong")
    assert page.locator("#text").input_value() == "Once upon a time there was a"


@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_wrong_with_a_chapter(visit, size):
    reader = visit(**SIZES[size], bypass_csp=True)
    page = reader.page
    reader.open(text="the cat sat")
    drop(reader, MARKED)
    wait_for_step(page, 1)
    form = page.locator(".chapter-question")
    form.locator(".chapter-acts").wait_for(timeout=SECONDS * 1000)
    reader.wait_until_drawn()
    assert Axe().run(page).response["violations"] == []
    form.get_by_role("button", name="Show the answer").click()
    page.get_by_role("button", name="All chapters").click()
    page.locator(".chapter-list").wait_for(timeout=SECONDS * 1000)
    assert Axe().run(page, context=".chapter").response["violations"] == []


def test_a_covered_drawing_appears_with_the_answer_and_what_follows_is_shown(visit):
    reader = visit(**SIZES["desk"])
    page = reader.page
    page.goto(f"{reader.url}/#chapter=predicting&chapter_step=5")
    wait_for_step(page, 6)
    form = page.locator(".chapter-question")
    form.locator(".chapter-acts").wait_for(timeout=SECONDS * 1000)
    reader.wait_until_drawn()
    plot = reader.view.locator(".plot").first
    assert not plot.is_visible()
    assert not page.get_by_role("button", name="Show it").is_visible()
    form.get_by_role("button", name="Show the answer").click()
    assert plot.is_visible()
    page.get_by_role("button", name="Show it").click()
    page.wait_for_function("location.hash.includes('next_token_temperature=0.5')")
    assert "chapter=predicting" in reader.fragment
    wait_for_step(page, 6)


def test_on_a_phone_the_sheet_of_a_chapter_leaves_the_finding_in_sight(visit):
    reader = visit(**SIZES["phone"])
    page = reader.page
    page.goto(f"{reader.url}/#chapter=why-this-word&chapter_step=0")
    wait_for_step(page, 1)
    form = page.locator(".chapter-question")
    form.locator(".chapter-acts").wait_for(timeout=SECONDS * 1000)
    reader.wait_until_drawn()
    for part in ("#says", "#hero .slot-word", "#arcs", "#insight"):
        assert not page.locator(part).first.is_visible(), "nothing is told before an answer"
    form.get_by_role("button", name="Show the answer").click()
    page.locator("#switch").wait_for()
    sheet = page.locator(".chapter").bounding_box()
    page.locator("#pinned.is-stuck").wait_for()
    for part in ("#says", "#switch"):
        box = page.locator(part).bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= sheet["y"]
    strip, bars = (
        page.locator(part).bounding_box() for part in ("#sentence", "#view-next_token .plot")
    )
    assert strip["y"] + strip["height"] <= bars["y"] < sheet["y"]


@pytest.mark.parametrize("size", SIZES)
def test_a_picture_of_an_experiment_is_brought_into_view(visit, size):
    reader = visit(**SIZES[size])
    page = reader.page
    page.goto(f"{reader.url}/experiments#experiment=projections&chapter=lookup&chapter_step=8")
    wait_for_step(page, 9)
    page.wait_for_function(
        """() => {
          const box = document.querySelector('[data-picture=loss]')?.getBoundingClientRect();
          return box && box.top < innerHeight / 2 + 100 && box.bottom > 0;
        }""",
        timeout=2 * SECONDS * 1000,
    )


def test_a_chapter_is_presented_on_the_whole_screen_with_keys(visit):
    reader = visit(**SIZES["desk"])
    page = reader.page
    page.goto(f"{reader.url}/#chapter=why-root-d&chapter_step=6")
    wait_for_step(page, 7)
    page.wait_for_function("location.pathname === '/experiments'")
    page.get_by_role("button", name="Present", exact=True).click()
    page.wait_for_function("document.fullscreenElement !== null")
    page.locator(".chapter-step").focus()
    page.keyboard.press("ArrowLeft")
    wait_for_step(page, 6)
    page.keyboard.press("PageDown")
    wait_for_step(page, 7)
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.pathname === '/'")
    wait_for_step(page, 8)
    assert page.locator("html.is-chapter-shown").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_function("!document.documentElement.matches('.is-chapter-shown')")


def test_a_file_of_ten_megabytes_and_another_model_are_told_in_a_sentence(visit):
    reader = visit(**SIZES["desk"])
    page = reader.page
    reader.open(text="the cat sat")
    drop(reader, MARKED + "x" * 10_000_000)
    page.locator("#text-note", has_text="a file may have").wait_for(timeout=SECONDS * 1000)
    drop(reader, MARKED.replace("model: stories", "model: nothing"))
    wait_for_step(page, 1)
    said = page.locator(".chapter-said", has_text="nothing")
    said.wait_for(timeout=SECONDS * 1000)
    drop(reader, MARKED.replace("head: 2", "head: 90"))
    page.locator(".chapter-said", has_text="90").wait_for(timeout=SECONDS * 1000)
    reader.errors.clear()  # the refusals, which the browser lists


def test_a_link_that_names_only_a_step_opens_its_sentence(visit):
    reader = visit()
    reader.page.goto(f"{reader.url}/#chapter=fewer-bits&chapter_step=1")
    wait_for_step(reader.page, 2)
    reader.page.wait_for_function(
        "document.querySelector('#text').value.startsWith('Once upon a time')"
    )
