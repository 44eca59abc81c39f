"""A drawing leaves the page as a picture, as numbers, as code, or as a link."""

import csv
import json

import pytest


def test_pictures_are_saved(reader, tmp_path):
    reader.open_view("attention", layer=0, head=1)
    assert reader.save("PNG", tmp_path).read_bytes().startswith(b"\x89PNG")
    assert "<svg" in reader.save("SVG", tmp_path).read_text()


def test_csv_json_and_the_table_hold_the_same_numbers(reader, tmp_path):
    reader.open_view("attention")
    told = json.loads(reader.save("JSON", tmp_path).read_text())
    rows = list(csv.reader(reader.save("CSV", tmp_path).read_text().splitlines()))
    table = reader.table()
    assert rows[0][1:] == table[0][1:] == told["columns"]
    assert [row[0] for row in table[1:]] == told["rows"]
    for row, values in zip(rows[1:], told["values"], strict=True):
        assert [float(cell) if cell else None for cell in row[1:]] == pytest.approx(values)


def test_the_copied_code_and_the_copied_link_lead_back(reader):
    reader.open_view("attention", layer=1, head=1)
    script = reader.copy("Python")
    compile(script, "copied", "exec")
    assert f"{reader.url}/api/v1/trace" in script
    assert reader.copy("curl").startswith("curl ")
    # A page that was open already keeps the view that it was sent to; a link leaves out the first.
    address = reader.page.url.replace("view=attention&", "")
    reader.page.get_by_role("button", name="Share", exact=True).click()
    reader.page.get_by_role("button", name="Copy link").click()
    reader.page.locator(".share-address").wait_for()
    reader.page.get_by_text("Link copied").first.wait_for()
    link = reader.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{reader.url}/s/")
    reader.page.goto(link)
    reader.page.wait_for_selector(".plot .main-svg")
    assert reader.page.url == address
