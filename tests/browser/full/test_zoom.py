"""The map of a long text: cells that can be seen, zoom by buttons."""

TEXT = "The old man saw the red fox under the tall tree by the river. " * 10
CELL = """() => {
  const { layout } = document.querySelector('.view:not([hidden]) .js-plotly-plot');
  const pane = document.querySelector('.view:not([hidden]) .nsewdrag');
  const [from, to] = layout.xaxis.range;
  return Number(pane.getAttribute('width')) / (to - from);
}"""


def zoom(reader, name):
    reader.view.get_by_role("group", name="Zoom").get_by_role(
        "button", name=name, exact=True
    ).click()
    reader.page.evaluate("new Promise((done) => setTimeout(done, 300))")
    return reader.page.evaluate(CELL)


def test_cells_of_a_long_text_are_large_enough_and_buttons_zoom(reader):
    reader.open(text=TEXT, layer=1, head=2)
    opened = reader.page.evaluate(CELL)
    assert opened >= 4
    assert zoom(reader, "Zoom in") > opened
    assert zoom(reader, "Whole map") < 4


def test_lines_of_a_long_text_are_one_screen_high(reader):
    reader.open(text=TEXT, layer=1, head=2, attention_as="lines")
    plot = reader.view.locator(".plot").first
    assert plot.bounding_box()["height"] <= reader.page.viewport_size["height"]
    assert reader.view.locator(".textpoint text").count() < 2 * len(reader.chips)
