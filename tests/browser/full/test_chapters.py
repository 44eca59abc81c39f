"""Every chapter that ships: each step opens, and each question is answered wrong and right."""

import pytest

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
    page.locator(".plot-light >> visible=true").nth(1).wait_for(timeout=SECONDS * 1000)
    plot = reader.view.locator(".plot").first
    plot.scroll_into_view_if_needed()
    press(page, plot, (0.05, 0.05))
    assert form.get_attribute("data-result") in ("right", "wrong")
    assert form.get_by_label("Row").input_value() == "0"
    assert form.get_by_label("Column").input_value() == "0"
    page.get_by_role("button", name="Next step").click()
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
