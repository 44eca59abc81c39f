"""The page for those who see it differently, or use only the keyboard."""

FOCUS = """() => {
  const node = document.activeElement;
  const shown = node.matches('.segmented input') ? node.nextElementSibling : node;
  const style = getComputedStyle(shown);
  return {
    html: node === document.body ? '' : node.outerHTML.slice(0, 160),
    isMarked: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0,
    isNamed: Boolean(node.ariaLabel || node.textContent.trim() || node.labels?.length),
  };
}"""


def test_axe_finds_nothing_wrong_with_any_view(visit, views, violations_of):
    assert violations_of(visit(bypass_csp=True), views) == {}


def test_tab_goes_through_the_whole_page_with_a_visible_focus_and_out_again(reader):
    reader.open_view("attention")
    reader.page.reload()
    reader.wait_until_drawn()
    seen = []
    for _ in range(80):
        reader.page.keyboard.press("Tab")
        stop = reader.page.evaluate(FOCUS)
        if not stop["html"] or (seen and stop["html"] == seen[0]):
            break
        seen.append(stop["html"])
        assert stop["isMarked"], f"no visible focus: {stop['html']}"
        assert stop["isNamed"], f"no accessible name: {stop['html']}"
    else:
        raise AssertionError("the focus never leaves the page")
    everything = " ".join(seen)
    for part in ('class="skip"', 'id="text"', 'id="model"', 'class="plot"', "menu-button"):
        assert part in everything
