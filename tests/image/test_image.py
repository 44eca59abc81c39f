"""The container image is built, started and used: `make image-test`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import sync_playwright

from tests.golden_traces import GOLDEN, REQUESTS, assert_is_golden
from tests.image import builder

ROOT = Path(__file__).parents[2]
TAG, TAG_HF = "headlight-test", "headlight-test:hf"
MOST_BYTES = 750_000_000
BUILD_SECONDS = 900
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]

pytestmark = pytest.mark.timeout(BUILD_SECONDS)


@pytest.fixture(scope="module")
def program():
    """Return the builder of this machine."""
    return builder.find_builder()


@pytest.fixture(scope="module")
def image(program):
    """Return the image as the README builds it."""
    builder.build(program, TAG)
    return TAG


@pytest.fixture(scope="module")
def container(program, image):
    """Yield a server in the image."""
    with builder.running(program, image) as container:
        yield container


def test_a_server_is_nobody_in_particular(container):
    assert container.run("id", "-u").stdout.strip() == "10001"


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_trace_is_the_golden_one(path, container):
    answer = httpx.post(
        f"{container.url}/api/v1/trace",
        json=REQUESTS[path.stem],
        headers={"Accept": "application/x-safetensors"},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    assert_is_golden(path, answer.content)


def test_the_page_draws_in_a_browser(container):
    errors, addresses = [], set()
    with sync_playwright() as playwright:
        path = os.environ.get("HEADLIGHT_CHROMIUM") or None
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: said.type == "error" and errors.append(said.text))
        page.on("request", lambda request: addresses.add(request.url))
        page.goto(f"{container.url}/#text=The+fox+said+%E2%80%9Cno%E2%80%9D.")
        page.wait_for_selector(".view:not([hidden]) .plot .nsewdrag", state="attached")
        browser.close()
    assert errors == []
    assert {address for address in addresses if not address.startswith(container.url)} == set()


def test_what_the_server_imports_is_compiled_already(container):
    """Without bytecode a read-only container would compile everything at each start."""
    code = "import headlight.main as main, torch; print(main.__cached__, torch.__cached__)"
    for path in container.run("python", "-c", code).stdout.split():
        assert container.run("test", "-s", path).returncode == 0, path


def test_what_is_dropped_from_the_libraries_is_needed_by_no_command(container):
    for words in (
        ["trace", "Once upon a time"],
        ["why", "stories", "Once upon a"],
        ["models"],
        ["limits"],
    ):
        done = container.run("headlight", *words)
        assert done.returncode == 0, done.stderr


def test_health_is_readiness(program, image, container):
    kind, *probe = builder.settings_of(program, image)["Healthcheck"]["Test"]
    assert kind == "CMD"
    assert container.run(*probe).returncode == 0
    nobody_listens = ["env", f"HEADLIGHT_PORT={builder.free_port()}", *probe]
    assert container.run(*nobody_listens).returncode != 0


def test_a_stopped_server_ends_in_time_and_has_written_to_tmp_alone(program, image):
    with builder.running(program, image) as container:
        order = {"text": "Once upon a time", "n_tokens": 5}
        httpx.post(f"{container.url}/api/v1/generate", json=order, timeout=60).raise_for_status()
        assert container.stop() == 0
        assert container.written() == set()


def test_a_checkpoint_in_a_mounted_folder_is_served(program, tmp_path):
    builder.build(program, TAG_HF, extras="[hf]")
    folder = tmp_path / "llama"
    command = [sys.executable, "-m", "tests.tiny_checkpoints", "llama", folder]
    subprocess.run(command, cwd=ROOT, check=True)
    for path in (tmp_path, folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    with builder.running(program, TAG_HF, models=tmp_path) as container:
        order = {"model": "llama", "text": "The cat sat", "capture": ["*.weights"]}
        answer = httpx.post(f"{container.url}/api/v1/trace", json=order, timeout=60)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["tensors"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["llama"]


def test_a_change_of_code_installs_no_dependency_again(program, image, tmp_path):
    for name in ("app", "model", "static", "templates"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (
        "pyproject.toml",
        "setup.py",
        "constraints.txt",
        "README.md",
        "LICENSE",
        "Dockerfile",
    ):
        shutil.copy2(ROOT / name, tmp_path)
    with (tmp_path / "app" / "main.py").open("a") as file:
        file.write("\n")
    said = builder.build(program, f"{image}:changed", context=tmp_path)
    assert "Collecting fastapi" not in said
    assert "torch-" not in said


def test_the_image_stays_small(container, capfd):
    size = int(container.run("du", "--summarize", "--bytes", "/headlight").stdout.split()[0])
    with capfd.disabled():
        print(f"\nThe image without its base: {size / 1e6:.0f} MB")  # noqa: T201
    assert size < MOST_BYTES
