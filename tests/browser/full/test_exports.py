"""Exports: each is taken as a person would take it, and the result is used."""

import json
import subprocess
import sys

import pytest

TEXT = "Once upon a time there was a little"
CLIPBOARD = ("clipboard-read", "clipboard-write")


@pytest.fixture
def writer(visit):
    """Return a person whose browser lets them look into the clipboard."""
    return visit(permissions=CLIPBOARD)


def test_the_maps_of_all_heads_are_saved_as_one_picture(reader, tmp_path):
    reader.open(text=TEXT)
    frame = reader.page.locator(".heads").bounding_box()
    with reader.page.expect_download() as download:
        reader.page.locator(".heads-block").get_by_role("button", name="PNG").click()
    assert download.value.suggested_filename == "headlight-all-heads.png"
    download.value.save_as(tmp_path / "heads.png")
    png = (tmp_path / "heads.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    width = int.from_bytes(png[16:20])
    assert abs(width - 2 * (frame["width"] + 16)) <= 2
    assert len(png) > 5000, "the maps are in it"


def test_the_menu_is_used_by_keyboard_and_left_by_escape(reader):
    reader.open(text=TEXT)
    page = reader.page
    focused = "document.activeElement.textContent"
    reader.view.get_by_role("button", name="Save", exact=True).focus()
    page.keyboard.press("Enter")
    menu = reader.view.get_by_role("group", name="Save the drawing, its numbers or code")
    assert menu.is_visible()
    page.keyboard.press("Tab")
    assert page.evaluate(focused).startswith("PNG")
    page.keyboard.press("Escape")
    assert not menu.is_visible()
    assert page.evaluate(focused) == "Save"
    page.keyboard.press("Enter")
    menu.get_by_role("button", name="JSON").focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".json")
    assert reader.announced == f"Saved {download.value.suggested_filename}"
    assert not menu.is_visible()


# Code that asks for the same numbers


def test_python_prints_the_weights_that_are_drawn(writer, tmp_path):
    writer.open(text="The keys to the cabinets are here", layer=1, head=2)
    seen = json.loads(writer.save("JSON", tmp_path).read_text())
    script = writer.copy("Python")
    done = subprocess.run([sys.executable, "-I", "-"], input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (_, printed) = done.stdout.split("self_attention.weights")
    row = [float(cell) for cell in printed.splitlines()[len(seen["rows"])].split()]
    assert row == pytest.approx(seen["values"][-1], abs=1e-3)


def test_code_asks_for_both_sides_of_a_comparison(writer):
    setting = {"compare_with": "text", "compare_text": "The key to the old cabinets is here"}
    writer.open(text="The keys to the cabinets are here", view="compare", layer=1, **setting)
    writer.view.locator(".panel h2", has_text="B − A").wait_for()
    titles = writer.view.locator(".panel:has(.exports) h2").all_inner_texts()
    panel = titles.index("B − A")
    script = writer.copy("Python", panel)
    assert "trace = read(" in script
    assert "before = read(" in script
    lines = writer.copy("curl", panel).splitlines()
    assert [line.split()[0] for line in lines] == ["curl", "curl", "#"]
