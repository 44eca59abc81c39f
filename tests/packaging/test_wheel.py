"""A wheel built from the tree: it brings the page and the models, and nothing for developers."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel_names(
    root: Path, committed: list[str], tmp_path_factory: pytest.TempPathFactory
) -> set[str]:
    """The names of the files in a freshly built wheel."""
    folder, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("tree")
    for name in committed:  # setuptools would leave build/ in the checkout
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, copy / name)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", folder, copy),
        ],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("headlight-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_page_travels_inside_the_app(wheel_names: set[str], committed: list[str]) -> None:
    page = {f"headlight/{name}" for name in committed if name.startswith(("static/", "templates/"))}
    assert page
    assert page <= wheel_names


def test_code_and_models_travel_whole(wheel_names: set[str], committed: list[str]) -> None:
    packages = {
        f"headlight/{name.removeprefix('app/')}"
        for name in committed
        if name.startswith(("app/", "model/"))
    }
    assert packages
    assert packages <= wheel_names


def test_nothing_else_travels(wheel_names: set[str]) -> None:
    folders = {name.split("/")[0] for name in wheel_names}
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == {"headlight"}
