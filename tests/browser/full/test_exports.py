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


def test_the_menus_are_walked_by_arrow_keys_and_left_by_escape(reader):
    reader.open(text=TEXT)
    page = reader.page
    focused = "document.activeElement.textContent"
    button = reader.view.get_by_role("button", name="Save", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert page.evaluate(focused).startswith("PNG")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused).startswith("Copy Python")
    page.keyboard.press("h")
    assert page.evaluate(focused).startswith("HTML")
    page.keyboard.press("Escape")
    assert not page.get_by_role("menu").is_visible()
    assert page.evaluate(focused) == "Save"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".json")
    assert reader.announced == f"Saved {download.value.suggested_filename}"
    assert page.evaluate(focused) == "Save"


# Code that gives the same numbers


def run_python(script):
    done = subprocess.run([sys.executable, "-I", "-"], input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown_by(script):
    """Return the numbers that a script computes, and its output."""
    out = run_python(script + "\nprint('---')\nprint(json.dumps(shown))")
    printed, shown = out.split("---\n")
    return json.loads(shown), printed


def numbers(rows):
    """Return a matrix in which what may not be seen, or is not known, counts for nothing."""
    return [number if number and number == number else 0 for row in rows for number in row]


@pytest.mark.parametrize(
    "setting",
    [
        {"which": "mean", "words": 1, "hide": "first", "renormalise": 1},
        {"which": "heads", "heads": "0,2", "hide": "special"},
        {"which": "max", "words": 1},
        {"which": "rollout", "hide": "first"},
    ],
    ids=lambda setting: setting["which"],
)
def test_python_makes_what_the_switches_of_attention_show(writer, tmp_path, setting):
    writer.open(
        text="The keys to the cabinets are here",
        layer=1,
        **{f"attention_{name}": value for name, value in setting.items()},
    )
    seen = json.loads(writer.save("JSON", tmp_path).read_text())
    script = writer.copy("Python")
    shown, printed = shown_by(script)
    assert numbers(shown) == pytest.approx(numbers(seen["values"]), abs=1e-4)
    assert len(printed.splitlines()) == len(seen["rows"])
    assert writer.copy("curl").splitlines()[-1].startswith("# From the response: ")


@pytest.mark.parametrize(
    "setting",
    [
        {"compare_with": "edit", "compare_edit": "temperature", "compare_temperature": 2},
        {"compare_with": "text", "compare_text": "The key to the old cabinets is here"},
        {"compare_with": "model", "compare_model": "stories-small", "head": 3},  # its partner: 0/3
    ],
    ids=lambda setting: setting["compare_with"],
)
def test_code_asks_for_both_sides_of_a_comparison_and_python_takes_the_difference(
    writer, tmp_path, setting
):
    writer.open(text="The keys to the cabinets are here", view="compare", layer=1, **setting)
    writer.view.locator(".panel h2", has_text="B − A").wait_for()
    titles = writer.view.locator(".panel:has(.exports) h2").all_inner_texts()
    of_both = [panel for panel, title in enumerate(titles) if title.startswith(("B − A", "After"))]
    assert len(of_both) == 2
    for panel in of_both:
        seen = json.loads(writer.save("JSON", tmp_path, panel).read_text())["values"]
        shown, _ = shown_by(writer.copy("Python", panel))
        shown = [[cell for cell in row if not isinstance(cell, str)] for row in shown]
        assert numbers(shown) == pytest.approx(numbers(seen), abs=1e-4)
        lines = writer.copy("curl", panel).splitlines()
        assert [line.split()[0] for line in lines] == ["curl", "curl", "#"]
