"""Modules are found by their files, described without an import, and named if they are broken."""

import sys
from pathlib import Path

import pytest

from headlight.model.discovery import import_all, module_names, summary


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Yield the name and the path of a package with modules in two folders."""
    for name, text in [
        ("kinds/__init__.py", ""),
        ("kinds/pear.py", '"""The fruit `pear`: green\nor yellow.\n\nMore."""\nCOLOUR = "green"'),
        ("others/apple.py", '"""Red."""\nCOLOUR = "red"'),
        ("others/notes.txt", ""),
    ]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import kinds

    kinds.__path__.append(str(tmp_path / "others"))
    yield kinds.__name__, kinds.__path__
    for name in [name for name in sys.modules if name.partition(".")[0] == "kinds"]:
        del sys.modules[name]


def test_the_modules_of_all_folders_are_imported_by_name(package):
    name, path = package
    assert module_names(path) == ["apple", "pear"]
    assert [module.COLOUR for module in import_all(name, path)] == ["red", "green"]


def test_a_summary_is_the_first_paragraph_after_the_name(package):
    name, path = package
    assert summary(path, "pear") == "green or yellow."
    assert summary(path, "apple") == "Red."
    assert f"{name}.pear" not in sys.modules


@pytest.mark.parametrize("text", ["1 / 0", "x = ("])
def test_a_broken_module_is_named(package, text):
    name, path = package
    Path(path[-1], "torn.py").write_text(text)
    with pytest.raises(ImportError, match=r"kinds\.torn cannot be imported") as caught:
        import_all(name, path)
    assert caught.value.name == "kinds.torn"


def test_a_module_that_cannot_be_parsed_or_found_is_named(package):
    _, path = package
    Path(path[-1], "torn.py").write_text("x = (")
    for name in ("torn", "plum"):
        with pytest.raises(ImportError, match=f"{name} cannot be described"):
            summary(path, name)
