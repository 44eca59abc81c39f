"""Why a head looks there: the way from a cell, and parts that are cut by mouse and by keys."""

from playwright.sync_api import expect

CELL = {"model": "plain", "text": "the cat sat on the mat", "layer": 1, "head": 0, "query": 5}


def test_a_cell_leads_to_its_parts_and_a_press_cuts_one(reader):
    reader.open(view="why", key=2, **CELL)
    reader.view.get_by_role("button", name="Why does it look there?").click()
    expect(reader.page.locator("#view-there .panel")).to_have_count(3)
    reader.wait_until_drawn()
    assert "view=there" in reader.fragment
    assert "key=2" in reader.fragment
    bars = reader.page.locator("#view-there .panel").first
    bars.locator(".table-block summary").click()
    bars.locator("table").wait_for()
    labels = bars.locator(".table-block tr th[scope=row]").all_text_contents()
    at = next(row for row, label in enumerate(labels) if row > 1 and "head" in label)
    reader.page.mouse.click(*reader.cell(at, 0, len(labels), 1, panel=0))
    reader.wait_until_drawn()
    assert "there_cut=" in reader.fragment
    expect(bars).to_contain_text("→")


def test_a_part_is_cut_by_keys_and_the_weight_stands_before_and_after(reader):
    reader.open(view="there", key=2, **CELL)
    bars = reader.view.locator(".panel").first
    expect(bars.locator(".plot .nsewdrag").first).to_be_attached()
    bars.locator(".plot").focus()
    reader.page.keyboard.press("Home")
    for _ in range(20):
        reader.page.keyboard.press("Enter")
        if "there_cut=" in reader.fragment:
            break
        reader.page.keyboard.press("ArrowDown")
    reader.wait_until_drawn()
    assert "there_cut=" in reader.fragment
    expect(bars).to_contain_text("→")


def test_the_thread_is_walked_by_arrow_keys_and_in_a_presentation(reader):
    text = {"model": "plain", "text": "the cat sat on the mat"}
    reader.open(view="word", word_show="thread", **text)
    arcs = reader.page.locator("#arcs path")
    expect(arcs).to_have_count(1)
    reader.page.locator("body").press("ArrowRight")
    expect(reader.page.get_by_role("button", name="← Step back")).to_be_visible()
    assert "word_step=1" in reader.fragment
    said = reader.page.locator("#says").text_content()
    reader.page.locator("body").press("ArrowLeft")
    expect(reader.page.locator("#says")).not_to_have_text(said)
    assert "word_step=0" in reader.fragment
    reader.press_in_menu("Present")
    queue = reader.page.locator("dialog.queue")
    queue.get_by_role("button", name="Add this view").click()
    queue.get_by_role("button", name="Start", exact=True).click()
    reader.page.keyboard.press("ArrowRight")
    expect(reader.page.locator("#says")).to_have_text(said)
    expect(reader.page.locator(".present-bar h1")).to_contain_text("1 of 1")
