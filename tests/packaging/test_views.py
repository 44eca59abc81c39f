"""Each view of the page has the tests that every view needs."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
VIEWS = re.findall(
    r"^    \"(\w+)\",$",
    (ROOT / "tests" / "browser" / "conftest.py").read_text().split("VIEWS = (")[1].split(")")[0],
    flags=re.MULTILINE,
)


def test_every_view_has_figure_tests_and_browser_tests_by_pointer_and_by_keyboard():
    assert len(VIEWS) > 3
    lacking = {}
    for view in VIEWS:
        figures = [*(ROOT / "tests" / "js").rglob(f"{view}.test.js")]
        browser = (ROOT / "tests" / "browser" / "full" / f"test_{view}.py").read_text()
        lacking[view] = [
            *([] if figures and "test(" in figures[0].read_text() else ["figures"]),
            *([] if re.search(r"\.click\(|mouse\.|\.check\(", browser) else ["pointer"]),
            *([] if "keyboard.press" in browser else ["keyboard"]),
        ]
    assert {view: parts for view, parts in lacking.items() if parts} == {}
