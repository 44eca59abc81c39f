"""The overview of a text of any length: its regions, by pointer and by keyboard."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect


def region_of(reader):
    """Return the region in the link; None: the whole text."""
    return parse_qs(urlsplit(reader.page.url).fragment).get("long_region")


def test_a_button_zooms_in_and_another_shows_the_whole_text(reader):
    reader.open_view("long")
    assert region_of(reader) is None
    reader.view.get_by_role("button", name="Zoom in").click()
    reader.page.wait_for_url(lambda url: "long_region" in url)
    reader.wait_until_drawn()
    reader.view.get_by_role("button", name="Whole text").click()
    reader.page.wait_for_url(lambda url: "long_region" not in url)


BOOK = "the cat sat on the mat, and a little light " * 40


@pytest.fixture
def reader_of_book(visit, tmp_path):
    """Return a page on which a long text was chosen as a file."""
    reader = visit(allow="422")
    book = tmp_path / "book.txt"
    book.write_text(BOOK)
    reader.open()
    with reader.page.expect_file_chooser() as chooser:
        reader.press_in_menu("Open a text file…")
    chooser.value.set_files(book)
    reader.page.wait_for_url(lambda url: "view=long" in url)
    reader.wait_until_plotted()
    return reader


def test_a_file_that_is_chosen_opens_the_overview_and_is_zoomed(reader_of_book):
    reader = reader_of_book
    facts = reader.view.locator(".panel-facts")
    expect(facts).to_contain_text("mean of")
    expect(facts).to_contain_text("Dashed line")
    assert reader.page.locator(".chip").count() > 0
    reader.page.mouse.click(*reader.cell(1, 1, 2, 2))
    reader.page.wait_for_url(lambda url: "long_region" in url)
    reader.wait_until_drawn()
    zoomed = [int(n) for n in region_of(reader)[0].split(".")]
    reader.view.get_by_role("button", name="Up", exact=True).click()
    reader.page.wait_for_url(lambda url: ".".join(map(str, zoomed)) not in url)
    moved = [int(n) for n in region_of(reader)[0].split(".")]
    assert moved[0] < zoomed[0]
    assert moved[1] - moved[0] == zoomed[1] - zoomed[0]


def test_a_long_text_is_saved_with_the_numbers_of_its_rows(reader_of_book, new_context, tmp_path):
    live = reader_of_book.page.locator("#view-long .plot-drawing")
    expect(live).to_contain_text("Entropy", timeout=60_000)  # it comes after the first maps
    path = reader_of_book.save_page(tmp_path)
    page = new_context(offline=True).new_page()
    page.goto(path.as_uri())
    drawing = page.locator("#view-long .plot-drawing")
    drawing.locator(".main-svg").first.wait_for(state="attached")
    expect(drawing).to_contain_text("Entropy")
    expect(drawing).to_contain_text("Loss")
    page.get_by_role("radio", name="Maximum").check()
    expect(page.locator("#view-long .panel h2")).to_contain_text("maximum of")
    page.context.close()


def test_a_file_that_cannot_be_read_changes_nothing(reader, tmp_path):
    reader.open_view("long")
    text = reader.page.locator("#text").input_value()
    for name, content, said in (
        ("book.pdf", b"\0\1\2\xff", "not text"),
        ("empty.txt", b" \n", "is empty"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with reader.page.expect_file_chooser() as chooser:
            reader.press_in_menu("Open a text file…")
        chooser.value.set_files(path)
        expect(reader.page.locator("#text-note")).to_contain_text(said)
    assert reader.page.locator("#text").input_value() == text


def test_the_rows_are_in_the_table_and_an_exact_cell_is_marked_by_keyboard_and_link(reader):
    reader.open_view("long")
    reader.view.locator(".table-block summary").click()
    expect(reader.view.locator("thead")).to_contain_text("entropy of the row")
    reader.view.locator(".plot").first.focus()
    reader.page.keyboard.press("ArrowDown")
    expect(reader.page.locator("#announcer")).to_contain_text("entropy of the row")
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_url(lambda url: "long_cell" in url)
    expect(reader.view.locator(".plot-mark.is-picked.is-shown")).to_be_attached()
    reader.page.reload()
    reader.wait_until_plotted()
    expect(reader.view.locator(".plot-mark.is-picked.is-shown")).to_be_attached()
