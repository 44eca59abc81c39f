"""The wheels built from the tree bring the page and the models, under the one name `headlight`."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import headlight
from tests.packaging.conftest import MADE


@pytest.fixture(scope="module")
def install(root, committed, tmp_path_factory):
    """Return a function that builds a wheel of the tree and installs it without dependencies."""
    return lambda **options: install_wheel(root, committed, tmp_path_factory, **options)


@pytest.fixture(scope="module")
def installed(install):
    """Return a folder with both installed wheels."""
    return install(with_zoo=True)


def install_wheel(root, committed, tmp_path_factory, *, without="nothing", with_zoo=False):
    wheels, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("tree")
    for name in committed:  # setuptools would leave build/ in the checkout
        if not name.startswith(f"{without}/"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, copy / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    sources = [copy, copy / "model" / "zoo"][: 1 + with_zoo]
    environment = os.environ | {"GITHUB_SERVER_URL": "https://host", "GITHUB_REPOSITORY": "a/b"}
    subprocess.run(
        [*pip, "wheel", *offline, "--wheel-dir", wheels, *sources], check=True, env=environment
    )
    built = sorted(wheels.glob("headlight_viz*.whl"))
    assert built[0].stat().st_size < 20e6
    target = tmp_path_factory.mktemp("site-packages")
    for wheel in built:
        with zipfile.ZipFile(wheel) as files:  # as pip does; its --target would replace the folder
            files.extractall(target)
    return target


@pytest.mark.slow
def test_page_code_and_models_travel_whole(installed, committed):
    package = {
        f"headlight/{name.removeprefix('app/')}"
        for name in committed
        if name.startswith(("app/", "lab/", "model/", "static/", "templates/"))
    }
    files = {str(path.relative_to(installed)) for path in installed.rglob("*")}
    documents = {
        name for name in committed if re.fullmatch(r"docs/[^/]+\.md|CONTRIBUTING\.md", name)
    }
    package |= {f"headlight/{name}" for name in documents}
    assert documents
    assert package - files == {
        f"headlight/{name}/pyproject.toml" for name in ("client", "model/zoo")
    }


@pytest.mark.slow
def test_a_source_archive_is_the_checkout(root, committed, tmp_path):
    for name in committed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    program = "import setuptools.build_meta as backend; backend.build_sdist('dist')"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True)
    (archive,) = tmp_path.glob("dist/headlight_viz-*.tar.gz")
    assert archive.stat().st_size < 80e6
    with tarfile.open(archive) as files:
        names = {file.name.partition("/")[2] for file in files if file.isfile()}
    assert set(committed) - names == set()
    assert {name for name in names - set(committed) if not name.startswith(MADE)} == set()


@pytest.mark.slow
def test_a_wheel_has_the_documents_that_a_site_shows(installed, elsewhere):
    program = """
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in str(each)]  # the checkout's
from headlight.site.documents import documents
for page, title, prose in documents():
    print(page)
"""
    pages = output_of(program, elsewhere, PYTHONPATH=str(installed))
    assert len(pages) > 15
    assert {"docs.html", "docs-api.html", "docs-quickstart.html", "docs-add.html"} <= set(pages)


@pytest.mark.slow
def test_no_file_is_in_both_wheels(installed):
    lists = [path.read_text().split("\n") for path in installed.glob("*.dist-info/RECORD")]
    alone, zoo = ({line.partition(",")[0] for line in lines if line} for lines in lists)
    assert alone & zoo == set()


@pytest.mark.slow
def test_links_of_the_description_are_absolute(installed):
    (path,) = installed.glob("headlight_viz-*.dist-info/METADATA")
    links = re.findall(r"\]\(([^)#]+)", path.read_text())
    assert "https://host/a/b/raw/HEAD/static/screenshot.png" in links
    assert [link for link in links if not link.startswith("http")] == []


@pytest.mark.slow
def test_without_the_zoo_its_models_and_chapters_say_how_they_come(install, elsewhere):
    program = """
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in str(each)]  # the checkout's
from fastapi.testclient import TestClient
from headlight.main import create_app
from headlight.settings import Settings
with TestClient(create_app(Settings()), base_url="http://localhost") as client:
    print(client.get("/api/v1/models/translate").json()["detail"])
    print(client.get("/api/v1/chapters").json()["unavailable"]["two-languages.md"])
    print(client.post("/api/v1/trace", json={"text": "The cat"}).status_code)
"""
    unknown, chapter, status = output_of(program, elsewhere, PYTHONPATH=str(install()))
    assert unknown.endswith("; more come with: pip install headlight-viz-zoo")
    assert chapter.startswith("two-languages.md: needs translate; more come with")
    assert status == "200"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("headlight", "a distribution named headlight (0.1.14) is installed here"),
        ("headlight-viz-client", "headlight-viz 1.0.0 and headlight-viz-client 0.1.14 are both"),
    ],
)
def test_another_distribution_of_the_package_is_refused(tmp_path, elsewhere, name, message):
    facts = tmp_path / f"{name.replace('-', '_')}-0.1.14.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.14\n")
    program = """
try:
    import headlight
except ImportError as error:
    print(error)
"""
    (said,) = output_of(program, elsewhere, PYTHONPATH=str(tmp_path))
    assert said.startswith(message)


@pytest.mark.slow
def test_no_other_name_is_installed(installed):
    names = {path.name for path in installed.iterdir()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"headlight"}


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

for words in (["--help"], ["trace", "The cat sat.", "--model", "positions-sinusoidal"]):
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


def not_of(root):
    """Skip where a wheel is installed, and no checkout."""
    if not Path(headlight.__file__).resolve().is_relative_to(root):
        pytest.skip("headlight is not installed from this folder: pip install -e . does so")


def test_so_is_the_checkout(elsewhere, root):
    not_of(root)
    (path,) = output_of(
        "import headlight.model\nfrom headlight import Client\nprint(headlight.__file__)", elsewhere
    )
    assert Path(path).resolve().is_relative_to(root)


CLIENT_ALONE = """
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in str(each)]  # the checkout's
for absent in ("torch", "fastapi", "starlette", "jinja2", "plotly", "typer", "zstandard", "brotli"):
    sys.modules[absent] = None
sys.path.insert(0, sys.argv[1])
from headlight import Client, distribution
assert distribution.__file__.startswith(sys.argv[1])
distribution.version_of = lambda name: None
from headlight.client.thread import Why
for ask in (lambda: __import__("headlight").load, Why(None, {"position": 0}).show):
    try:
        ask()
    except ImportError as error:
        print(error)
"""


def test_the_client_alone_needs_neither_pytorch_nor_the_server(root, tmp_path, elsewhere):
    not_of(root)
    subprocess.run([sys.executable, root / ".ci" / "client_tree.py", tmp_path], check=True)
    said = output_of(CLIENT_ALONE.replace("sys.argv[1]", repr(str(tmp_path))), elsewhere)
    assert [line.endswith("pip install headlight-viz") for line in said] == [True, True]
    alone, whole = (
        tomllib.loads(path.read_text())["project"]
        for path in (tmp_path / "pyproject.toml", root / "pyproject.toml")
    )
    assert alone["version"] == whole["version"]
    assert set(alone["dependencies"]) <= set(whole["dependencies"])
