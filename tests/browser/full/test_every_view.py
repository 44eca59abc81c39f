"""Each view: its table, its exports, its code, and any script."""

import csv
import json
import re

import httpx
import pytest

CLIPBOARD = ("clipboard-read", "clipboard-write")
# A drawing of many small figures says the same of each.
MOST_PANELS = 3


def open_drawn(reader, view):
    """Open a view and wait for its first drawing; give the numbers of its panels that are drawn."""
    reader.open_view(view)
    panels = reader.view.locator(".panel")
    drawn = [index for index in range(panels.count()) if is_drawn(panels.nth(index))]
    assert drawn
    return drawn[:MOST_PANELS]


def is_drawn(panel):
    return panel.locator(".exports").is_visible()


def test_its_table_csv_and_json_hold_the_same_cells(reader, tmp_path, view):
    for panel in open_drawn(reader, view):
        block = reader.view.locator(".panel").nth(panel)
        told = json.loads(reader.save("JSON", tmp_path, panel).read_text())
        rows = list(csv.reader(reader.save("CSV", tmp_path, panel).read_text().splitlines()))
        block.locator(".table-block summary").click()
        block.locator("table").wait_for()
        table = block.locator("tr").evaluate_all(
            "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
        # Statistics of each row are next to the map of a long text: first in a table, last in CSV
        n_columns = len(told["columns"])
        assert rows[0][1 : n_columns + 1] == table[0][-n_columns:] == told["columns"]
        for row, values in enumerate(told["values"]):
            cells = [float(cell) if cell else None for cell in rows[row + 1][1 : n_columns + 1]]
            assert cells == pytest.approx(values)
        for row, line in enumerate(table[1:]):
            assert [cell == "" for cell in line[-n_columns:]] == [
                v is None for v in told["values"][row]
            ]


def test_its_pictures_can_be_saved(reader, tmp_path, view):
    (panel, *_) = open_drawn(reader, view)
    assert reader.save("PNG", tmp_path, panel).read_bytes().startswith(b"\x89PNG")
    assert "<svg" in reader.save("SVG", tmp_path, panel).read_text()


def test_its_code_is_answered_by_the_server(visit, view):
    reader = visit(permissions=CLIPBOARD)
    for panel in open_drawn(reader, view):
        script = reader.copy("Python", panel)
        compile(script, "copied", "exec")
        url = re.search(r'read\(ask\("(http[^"]+)"', script).group(1)
        assert url.startswith(reader.url + "/api/v1/")
        body = re.search(r'r"""(.*?)"""\)', script, flags=re.DOTALL)
        answer = (
            httpx.post(url, json=json.loads(body.group(1)), timeout=60)
            if body
            else httpx.get(url, timeout=60)
        )
        assert answer.status_code == 200, answer.text


SCRIPTS = "שלום مرحبا 猫は e\u0301 \u0301 a\u200bb \u0007 \u202egnat 👩\u200d🚀 <b> </s>"


def test_it_draws_any_script_and_shows_what_cannot_be_seen(reader, view):
    reader.open_view(view, text=SCRIPTS)
    assert reader.view.locator(".panel-notice.is-failure:visible").count() == 0
    assert reader.page.locator("#chips").get_attribute("dir") == "rtl"
    widths = reader.page.locator("#chips .chip bdi").evaluate_all(
        "(names) => names.map((name) => name.getBoundingClientRect().width)"
    )
    assert min(widths) > 3, "a token that nobody sees"
    seen = reader.view.text_content() + "".join(reader.chips)
    assert not set(seen) & set("\u200b\u0007\u202e"), "a character that does its work unseen"
    widths = reader.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
