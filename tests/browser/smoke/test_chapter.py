"""A chapter next to the page, from its first step to its last, on a desk and on a phone."""

from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import SECONDS

SIZES = {"desk": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
HEAD = "---\ntitle: Mine\n---\n\n"


@pytest.fixture(params=SIZES)
def reader_of_chapters(request, visit):
    return visit(**SIZES[request.param])


def wait_for_step(page, number):
    page.wait_for_function(
        "(n) => document.querySelector('.chapter select')?.value === String(n - 1)",
        arg=number,
        timeout=SECONDS * 1000,
    )


def right_answer(reader, identity, at):
    """Return what the server says is right at a step."""
    return reader.page.evaluate(
        """async ([id, at]) => {
          const json = async (answer) => (await answer).json();
          const { steps } = await json(fetch(`/api/v1/chapters/${id}`));
          const given = (value) => Array.isArray(value) || typeof value !== 'object' || !value
            ? value
            : Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null)
              .map(([name, each]) => [name, given(each)]));
          const { opens, question } = steps[at];
          if (!question) return null;
          const body = JSON.stringify({ opens: given(opens), answer: given(question.answer) });
          const headers = { 'Content-Type': 'application/json' };
          return json(fetch('/api/v1/chapters/answer', { method: 'POST', headers, body }));
        }""",
        [identity, at],
    )


def picture(reader, identity, at):
    """Return the id of the drawing that a step brings into view, or nothing."""
    return reader.page.evaluate(
        """async ([id, at]) => {
          const answer = await fetch(`/api/v1/chapters/${id}`);
          return (await answer.json()).steps[at].picture;
        }""",
        [identity, at],
    )


def answer(page, outcome, *, is_right):
    """Answer the question that is shown, and return what the page says."""
    form = page.locator(".chapter-question")
    form.locator(".chapter-acts").wait_for(timeout=SECONDS * 1000)
    if outcome["kind"] == "number":
        form.locator("input").fill(str(outcome["right"] if is_right else outcome["right"] + 9999))
    elif outcome["kind"] == "cell":
        row, column = outcome["right"]
        wrong = (column + 1) % len(outcome["columns"])
        form.get_by_label("Row").select_option(str(row))
        form.get_by_label("Column").select_option(str(column if is_right else wrong))
    else:
        values = [str(choice["value"]) for choice in outcome["choices"]]
        wrong = next(value for value in values if value != str(outcome["right"]))
        value = str(outcome["right"]) if is_right else wrong
        form.locator(".chapter-choice").nth(values.index(value)).click()
    form.get_by_role("button", name="Answer", exact=True).click()
    return form.get_attribute("data-result"), form.locator(".chapter-said").inner_text()


def walk(reader, chapter):
    """Go through a chapter, answer each question wrong and right, and return how many there are."""
    page = reader.page
    page.goto(f"{reader.url}/#chapter={chapter}")
    wait_for_step(page, 1)
    n_steps = page.locator(".chapter select option").count()
    n_asked = 0
    for at in range(n_steps):
        wait_for_step(page, at + 1)
        assert f"chapter_step={at}" in reader.fragment
        if outcome := right_answer(reader, chapter, at):
            n_asked += 1
            assert page.locator("html.is-asking").count() == 1
            result, said = answer(page, outcome, is_right=False)
            assert (result, "it is" in said) == ("wrong", True)
            assert answer(page, outcome, is_right=True)[0] == "right"
            assert page.locator("html.is-asking").count() == 0
        if urlsplit(page.url).path == "/":
            reader.wait_until_drawn()
        if name := picture(reader, chapter, at):
            panel = page.locator(f".view:not([hidden]) [data-picture='{name}'] .main-svg")
            panel.first.wait_for(state="attached", timeout=2 * SECONDS * 1000)
        if at + 1 < n_steps:
            page.get_by_role("button", name="Next step", exact=True).click()
    return n_asked


def test_every_step_opens_and_every_question_is_answered_wrong_and_right(reader_of_chapters):
    page = reader_of_chapters.page
    n_asked = walk(reader_of_chapters, "copying")
    assert n_asked >= 3
    kept = page.evaluate("JSON.parse(localStorage.getItem('headlight.chapters')).copying")
    assert (len(kept["right"]), kept["wrong"]) == (n_asked, [])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_stays_usable_and_the_way_back_to_the_step_is_one_press(reader_of_chapters):
    reader, page = reader_of_chapters, reader_of_chapters.page
    page.goto(f"{reader.url}/#chapter=copying&chapter_step=1")
    wait_for_step(page, 2)
    reader.wait_until_drawn()
    reader.write("Once upon a time there was a fox.")
    assert "chapter=copying" in reader.fragment
    page.get_by_role("button", name="Back to the step").click()
    page.wait_for_function("document.querySelector('#text').value.startsWith('Doctor Mouse')")
    page.get_by_role("button", name="Close the chapter").click()
    assert "chapter" not in reader.fragment


def test_a_step_opens_an_experiment_and_the_next_one_another_page(reader_of_chapters):
    reader, page = reader_of_chapters, reader_of_chapters.page
    page.goto(f"{reader.url}/experiments#experiment=scaling&chapter=why-root-d&chapter_step=7")
    wait_for_step(page, 8)
    page.get_by_role("button", name="Back to the step").click()
    page.wait_for_function("location.pathname === '/'")
    wait_for_step(page, 8)
    page.get_by_role("button", name="Step before").click()
    page.wait_for_function("location.pathname === '/experiments'")
    wait_for_step(page, 7)


def test_a_bad_file_is_named_in_a_sentence_and_nothing_of_it_runs(reader_of_chapters):
    reader, page = reader_of_chapters, reader_of_chapters.page
    reader.open(text="the cat sat")
    for text, said in (
        (HEAD + "## A\n\n<img src=x onerror=\"document.title='ran'\">\n", "line 7"),
        (HEAD + "## A\n\n" + "word " * 70, "70 words"),
        (HEAD + "## A\n\nx\n" + " " * 300_000, "larger"),
    ):
        page.evaluate(
            """(text) => {
              const files = new DataTransfer();
              files.items.add(new File([text], 'mine.md', { type: 'text/markdown' }));
              const drop = { dataTransfer: files, bubbles: true, cancelable: true };
              document.body.dispatchEvent(new DragEvent('drop', drop));
            }""",
            text,
        )
        page.locator(".chapter [role=alert]", has_text=said).wait_for(timeout=SECONDS * 1000)
    assert page.title() != "ran"
    reader.errors.clear()  # the refusals, which the browser lists
