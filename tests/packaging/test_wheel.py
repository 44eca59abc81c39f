"""A wheel built from the tree brings the page and the models, under the one name `headlight`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def install(root, committed, tmp_path_factory):
    """Return a function that builds a wheel of the tree and installs it without dependencies."""
    return lambda **options: install_wheel(root, committed, tmp_path_factory, **options)


@pytest.fixture(scope="module")
def installed(install):
    """Return a folder with the installed wheel."""
    return install()


def install_wheel(root, committed, tmp_path_factory, *, without="nothing"):
    wheels, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("tree")
    for name in committed:  # setuptools would leave build/ in the checkout
        if not name.startswith(f"{without}/"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, copy / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", wheels, copy], check=True)
    (wheel,) = wheels.glob("headlight-*.whl")
    target = tmp_path_factory.mktemp("site-packages")
    subprocess.run(
        [*pip, "install", *offline, "--no-compile", "--target", target, wheel], check=True
    )
    return target


@pytest.mark.slow
def test_page_code_and_models_travel_whole(installed, committed):
    package = {
        f"headlight/{name.removeprefix('app/')}"
        for name in committed
        if name.startswith(("app/", "lab/", "model/", "static/", "templates/"))
    }
    files = {str(path.relative_to(installed)) for path in installed.rglob("*")}
    assert package
    assert package - files == set()


@pytest.mark.slow
def test_no_other_name_is_installed(installed):
    names = {path.name for path in installed.iterdir()}
    assert {name for name in names if not name.endswith(".dist-info")} <= {"headlight", "bin"}


@pytest.fixture
def elsewhere(tmp_path):
    """Return a folder of somebody who has an `app` and a `model` too."""
    (tmp_path / "app.py").write_text("raise RuntimeError('the wrong app')")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "__init__.py").write_text("raise RuntimeError('the wrong model')")
    return tmp_path


def output_of(program, folder, **environment):
    (folder / "program.py").write_text(program)
    command = [sys.executable, "program.py"]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_wheel_is_used_beside_an_app_and_a_model_of_somebody_else(installed, elsewhere):
    program = """
import headlight
from headlight import AsyncClient, Client, load, read_trace, trace
from headlight.model.checkpoint.loading import ZOO

print(headlight.__file__)
print(trace(load(ZOO / "positions-rotary"), "The cat sat.").tokens[0].text)
"""
    path, token = output_of(program, elsewhere, PYTHONPATH=str(installed))
    assert Path(path).is_relative_to(installed)
    assert token == "<s>"


RUN = """
import contextlib, io, sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in str(each)]  # the checkout's
from headlight.cli import app

for words in (["--help"], ["trace", "The cat sat.", "--model", "positions-rotary"]):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        sys.argv = ["headlight", *words]
        app()
    sys.stdout.write(printed.getvalue())
"""


@pytest.mark.slow
@pytest.mark.parametrize("without", ["nothing", "lab"])
def test_the_command_has_what_is_installed(install, elsewhere, without):
    installed = install(without=without)
    assert (installed / "headlight" / "lab").exists() == (without == "nothing")
    lines = output_of(RUN, elsewhere, PYTHONPATH=str(installed))
    assert any("likely to come next" in line for line in lines)
    commands = {line.strip("│ ").split(" ")[0] for line in lines}
    assert commands >= {"serve", "profile", "settings"}
    assert ({"train", "data"} <= commands) == (without == "nothing")


def test_so_is_the_checkout(elsewhere, root):
    (path,) = output_of(
        "import headlight.model\nfrom headlight import Client\nprint(headlight.__file__)", elsewhere
    )
    assert Path(path).resolve().is_relative_to(root)
