"""The exports and the table of each experiment hold the numbers that the API returns."""

import csv
import io
import json
from math import isclose

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.experiments_page import EXPERIMENTS, SHORT, open_experiment

SIDES = {-1: "only in the first", 0: "in both", 1: "only in the second"}


def numbers_in(nested):
    """Return every number of nested lists."""
    if isinstance(nested, list):
        return [number for each in nested for number in numbers_in(each)]
    return [float(nested)] if isinstance(nested, (int, float)) else []


def in_table(value):
    """Return a number as the table writes it, and half a unit of its last digit."""
    text, _, unit = value.replace("−", "-").replace(",", "").replace("<", "").partition(" ")
    mantissa, _, power = text.partition("·10")
    digits = power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))
    scale = 10 ** int(digits or 0) / (100 if unit == "%" else 1)
    return float(mantissa) * scale, scale * 10 ** -len(mantissa.partition(".")[2]) / 2


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_exports_and_table_are_the_numbers_of_the_api(visit, tmp_path, name):
    reader = visit()
    given = SHORT.get(name, {})
    open_experiment(reader, name, **given)
    view = reader.page.locator(f"#view-{name}")
    if name in SHORT:
        expect(view.get_by_role("button", name="Run", exact=True)).to_be_visible(timeout=60_000)
    expect(view.locator(".finding")).not_to_contain_text("on their way", timeout=30_000)
    expect(view).not_to_contain_class("is-drawing", timeout=30_000)
    answer = httpx.post(
        f"{reader.url}/api/v1/experiments/{name}",
        json=given,
        headers={"Accept": "application/json"},
        timeout=60,
    )
    arrays = answer.json()["arrays"]
    saved = reader.save("CSV", tmp_path).read_text()
    _, *lines = csv.reader(io.StringIO(saved))
    if name in ("tokenizer", "cost"):  # one has tokens as numbers, the other is measured again
        assert lines
        return
    values = [[float(cell) for cell in line[1:] if cell] for line in lines if line]
    known = [number for array in arrays.values() for number in numbers_in(array["data"])]
    if name == "minhash":
        flat = [value for line in values for value in line]
        assert flat.count(0) == sum(map(all, zip(*arrays["is_in"]["data"], strict=True)))
    else:
        for value in (value for line in values for value in line):
            assert any(isclose(value, each, rel_tol=1e-7, abs_tol=1e-12) for each in known), value
    _, *rows = reader.table()
    for row, line in zip(rows, values, strict=False):
        for cell, value in zip(row[1:], line, strict=False):
            if name == "minhash":
                assert cell == SIDES[int(value)]
            elif cell.startswith("<"):
                assert abs(value) < in_table(cell)[0]
            elif any(map(str.isdigit, cell)):  # a kind is words in the table
                number, half = in_table(cell)
                assert isclose(number, value, rel_tol=0.06, abs_tol=max(half, 6e-4)), cell
    told = json.loads(reader.save("JSON", tmp_path).read_text())
    assert (told["experiment"], told["parameters"]) == (name, given)
    assert reader.save("PNG", tmp_path).read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in reader.save("SVG", tmp_path).read_text()
