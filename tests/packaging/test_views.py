"""What comes with a view: a test of its figures, and a person's path through it in a browser."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REGISTRY = (ROOT / "static" / "js" / "views" / "registry.js").read_text()
MODULES = re.findall(r"^import .* from '\./\w+/(\w+)\.js';$", REGISTRY, flags=re.MULTILINE)


def test_views_are_found() -> None:
    (listed,) = re.findall(r"VIEWS = \[([^\]]*)\]", REGISTRY)
    assert len(MODULES) == len(re.findall(r"\w+", listed)) > 3


@pytest.mark.parametrize("view", MODULES)
def test_a_view_is_called_as_its_module_is(view: str) -> None:
    module = (ROOT / "static" / "js" / "views" / view / f"{view}.js").read_text()
    assert re.findall(r"^  id: '(\w+)',$", module, flags=re.MULTILINE) == [view]


@pytest.mark.parametrize("view", MODULES)
def test_a_view_has_a_test_of_its_figures(view: str) -> None:
    assert "test(" in (ROOT / "tests" / "js" / "views" / view / f"{view}.test.js").read_text()


@pytest.mark.parametrize("view", MODULES)
def test_a_view_has_a_browser_test_by_pointer_and_by_keyboard(view: str) -> None:
    tests = (ROOT / "tests" / "browser" / f"test_{view}.py").read_text()
    assert "def test_" in tests
    assert re.search(r"\.click\(|mouse\.|\.check\(|\.take\(", tests), "nobody clicks"
    assert "keyboard.press" in tests, "nobody uses the keyboard"
