"""Why a cell is what it is: its steps by mouse and by keys."""

from playwright.sync_api import expect

TEXT = "the cat sat on the mat"
LAYER, HEAD = 1, 0


def steps(reader):
    return reader.view.locator(".panel h2").all_text_contents()


def step(reader, title):
    return reader.view.locator(".panel", has=reader.page.locator("h2", has_text=title))


def open_cell(reader, model, query, key, **more):
    reader.open(
        view="why", model=model, text=TEXT, layer=LAYER, head=HEAD, query=query, key=key, **more
    )
    expect(step(reader, "output").locator(".plot .nsewdrag").first).to_be_attached()


def test_another_key_is_worked_out_by_a_click_on_its_bar(reader):
    open_cell(reader, "plain", 5, 2)
    place = next(at for at, title in enumerate(steps(reader)) if "softmax" in title)
    lanes, keys = 1, len(reader.chips)
    reader.page.mouse.click(*reader.cell(0, 1, lanes, keys, panel=place))
    reader.wait_until_drawn()
    assert "key=1" in reader.fragment
    reader.page.mouse.move(0, 0)
    assert "attends to “the” at 1 with weight" in reader.readout
    expect(reader.view.get_by_label("Key", exact=True)).to_have_value("1")


def test_a_path_by_keys_to_a_cell_and_to_its_why(reader):
    reader.open(text=TEXT, model="plain", layer=LAYER, head=HEAD)
    reader.page.locator('#view-list [aria-current="true"]').focus()
    reader.page.keyboard.press("ArrowRight")
    reader.page.keyboard.press("Enter")
    expect(reader.page.locator("#title-why")).to_be_focused()
    reader.wait_until_drawn()
    query = reader.view.get_by_label("Query", exact=True)
    first = int(query.input_value())
    query.focus()
    reader.page.keyboard.press("ArrowUp")
    reader.wait_until_drawn()
    assert f"query={first - 1}" in reader.fragment
    plot = step(reader, "softmax").locator(".plot")
    plot.focus()
    reader.page.keyboard.press("Home")
    reader.page.keyboard.press("ArrowRight")
    assert reader.announced.startswith("weight, ")
    reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert "key=1" in reader.fragment
    expect(plot).to_be_focused()
    reader.page.go_back()
    reader.wait_until_drawn()
    assert "key=" not in reader.fragment
