"""Presenting a queue of views, figures for a paper, and the page saved to be sent."""

import json
import re
import struct

import pytest
from playwright.sync_api import expect

TEXT = "the cat sat on the mat"
MM_PER_INCH = 25.4
LACKING = re.compile("not in this file|saved page holds", re.IGNORECASE)
# The sizes of all letters that are seen, as they are drawn.
SIZES = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const sizes = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility({ visibilityProperty: true }))
      continue;
    const { width, height } = node.getBoundingClientRect();
    if (width < 2 || height < 2 || node.closest('.unseen, script, style')) continue;
    sizes.push(parseFloat(getComputedStyle(node).fontSize) * node.currentCSSZoom);
  }
  return sizes;
}"""


MIDDLE = """(arc) => {
  const { left, width } = arc.getBoundingClientRect();
  return left + width / 2;
}"""


def open_queue(reader):
    reader.press_in_menu("Present")
    return reader.page.locator("dialog.queue")


def add_view(reader):
    queue = open_queue(reader)
    queue.get_by_role("button", name="Add this view").click()
    queue.get_by_role("button", name="Close").click()


def names_in(queue):
    return queue.locator(".queue-list input").evaluate_all("(all) => all.map((one) => one.value)")


def test_a_queue_is_edited_exported_and_imported(visit, tmp_path):
    reader = visit()
    reader.open(text=TEXT, layer=1, head=1)
    add_view(reader)
    reader.choose_view("next_token")
    add_view(reader)
    queue = open_queue(reader)
    name = queue.locator("input[type=text]").first
    name.fill("The head")
    name.press("Alt+ArrowDown")
    assert names_in(queue)[1] == "The head"
    with reader.page.expect_download() as download:
        queue.get_by_role("button", name="Export", exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    views = json.loads(path.read_text())["views"]
    assert [view["name"] for view in views] == names_in(queue)
    assert "view=next_token" in views[0]["link"]
    other = visit()
    other.open(text=TEXT)
    queue = open_queue(other)
    assert names_in(queue) == []
    queue.locator("input[type=file]").set_input_files(path)
    queue.locator(".queue-list input").nth(1).wait_for()
    assert names_in(queue) == [view["name"] for view in views]
    queue.get_by_role("button", name="Remove The head").click()
    assert len(names_in(queue)) == 1


@pytest.mark.parametrize(("width", "height", "least"), [(1440, 900, 20), (390, 844, 14)])
def test_what_is_covered_is_revealed_by_a_key_and_all_type_is_large(visit, width, height, least):
    reader = visit(width=width, height=height)
    reader.open_view("next_token", text=TEXT)
    add_view(reader)
    reader.choose_view("attention")
    add_view(reader)
    page = reader.page
    queue = open_queue(reader)
    queue.get_by_role("button", name="Cover…").first.click()
    reader.wait_until_drawn()
    rows = page.locator(".view:not([hidden]) .plot .bars .point").count()
    page.mouse.click(*reader.cell(0, 0, rows, 1))
    page.locator(".cover").wait_for()
    page.get_by_role("button", name="Done").click()
    queue.get_by_role("button", name="Start", exact=True).click()
    assert page.get_by_role("heading", level=1).count() == 1
    cover = page.locator(".view:not([hidden]) .cover")
    cover.wait_for()
    assert (
        page.locator("#readout").evaluate("(said) => getComputedStyle(said).visibility") == "hidden"
    )
    assert min(page.evaluate(SIZES)) >= least
    page.keyboard.press("ArrowRight")
    cover.wait_for(state="detached")
    assert reader.open_view_id == "next_token"
    page.keyboard.press("ArrowRight")
    page.locator("#view-attention:not([hidden]) .plot .main-svg").first.wait_for(state="attached")
    assert min(page.evaluate(SIZES)) >= least
    page.keyboard.press("ArrowLeft")
    page.locator("#view-next_token:not([hidden])").wait_for()
    page.keyboard.press("Escape")
    page.locator(".present-bar").wait_for(state="detached")
    assert "is-presenting" not in page.locator("html").get_attribute("class")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768)])
def test_the_scene_and_the_drawing_share_the_screen_and_the_switch_works(visit, width, height):
    reader = visit(width=width, height=height)
    reader.open(layer=3, head=3)
    page = reader.page
    page.locator("#switch").wait_for()
    add_view(reader)
    open_queue(reader).get_by_role("button", name="Start", exact=True).click()
    page.wait_for_function(  # drawn again, for what is left
        """() => document.querySelector('.view:not([hidden]) .plot').getBoundingClientRect().bottom
          <= document.querySelector('.present-bar').getBoundingClientRect().top"""
    )
    plot = reader.view.locator(".plot").bounding_box()
    text, bar = page.locator("#text").bounding_box(), page.locator(".present-bar").bounding_box()
    assert plot["height"] > height / 2
    for part in ("#says", "#says-more", "#switch", "#next"):
        box = page.locator(part).bounding_box()
        assert box["y"] >= text["y"] + text["height"]
        assert box["y"] + box["height"] <= bar["y"]
        assert box["x"] + box["width"] <= plot["x"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    middle = page.locator("#arcs path").evaluate(MIDDLE)
    ends = [piece.bounding_box() for piece in page.locator("#hero-words .is-read").all()]
    word = page.locator("#hero-words .piece").last.bounding_box()
    assert ends[-1]["x"] < middle < word["x"], "the arc stands over the words that it links"
    page.locator("#switch").click()
    expect(page.locator("#says")).to_contain_text("Without")


def saved_figure(dialog, kind, folder):
    dialog.locator("img").wait_for()
    dialog.locator(f"input[value={kind}]").check()
    with dialog.page.expect_download() as download:
        dialog.get_by_role("button", name="Save figure").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path.read_bytes()


def test_a_figure_has_the_stated_width_and_names_model_and_text_once(reader, tmp_path):
    reader.open_view("attention", model="plain", text=TEXT, layer=1, head=1)
    reader.take("Figure…")
    page, dialog = reader.page, reader.page.locator("dialog.paper")
    svg = saved_figure(dialog, "svg", tmp_path).decode()
    assert re.match(r'<svg width="85mm"', svg)
    caption = re.search(r'class="gtitle".*?</text>', svg)[0]
    caption = " ".join(re.findall(r">([^<]+)<", caption))
    assert TEXT in caption
    assert "plain, revision" in caption
    assert caption.lower().count("layer 1, head 1") == 1
    png = saved_figure(dialog, "png", tmp_path)
    (across,) = struct.unpack(">I", png[16:20])
    assert across == round(85 / MM_PER_INCH * 300)
    at = png.index(b"pHYs") + 4
    assert struct.unpack(">IIB", png[at : at + 9]) == (11811, 11811, 1)
    page.evaluate("window.print = () => {}")
    dialog.get_by_role("button", name="Print or PDF").click()
    page.locator("body > img.on-paper").wait_for(state="attached")
    boxes = re.findall(rb"/MediaBox \[([\d. ]+)\]", page.pdf(prefer_css_page_size=True))
    assert len(boxes) == 1, "it fits on its page"
    assert float(boxes[0].split()[2]) == pytest.approx(85 / MM_PER_INCH * 72, abs=0.5)


def test_the_saved_page_opens_on_what_was_seen_and_holds_the_queue(visit, tmp_path, new_context):
    reader = visit()
    reader.open(model="plain", text=TEXT, layer=1, head=1, query=4, key=2)
    add_view(reader)
    path = reader.save_page(tmp_path)
    assert path.name.startswith("headlight-plain-the-cat-sat")
    said = reader.page.locator(".share [role=status]").last.text_content()
    assert path.name in said
    assert f"{path.stat().st_size / 1e6:.1f} MB" in said
    assert path.stat().st_size < 3_000_000
    page = new_context(offline=True).new_page()
    wrong, asked = [], []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url.split(":")[0]))
    page.goto(path.as_uri())
    page.wait_for_selector(".plot .heatmaplayer image", state="attached")
    assert (
        page.locator(".heads-cell[aria-selected=true]")
        .get_attribute("aria-label")
        .startswith("Layer 1, head 1")
    )
    selected = page.locator("#chips .chip").evaluate_all(
        "(all) => all.findIndex((one) => one.ariaSelected === 'true')"
    )
    assert selected == 4
    assert page.locator("#text").evaluate(
        "(box) => box.readOnly && getComputedStyle(box).borderTopColor === 'rgba(0, 0, 0, 0)'"
    )
    assert " ms" not in page.locator("#status").text_content()
    page.click("#more")
    page.click("#present")
    expect(page.locator("dialog.queue .queue-list input")).to_have_count(1)
    page.get_by_role("button", name="Close").click()
    for view in ("why", "positions", "stream", "next_token", "word"):
        page.evaluate("(view) => { location.hash = `#view=${view}` }", view)
        page.locator(f"#view-{view}:not([hidden]) .plot .main-svg").first.wait_for(state="attached")
        notice = page.locator(f"#view-{view} .panel-notice:visible", has_text=LACKING)
        page.wait_for_selector("#main[aria-busy=false]")
        assert notice.all_inner_texts() == [], view
    page.context.close()
    assert wrong == []
    assert set(asked) <= {"file", "data", "blob"}
