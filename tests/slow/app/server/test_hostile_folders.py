"""A server next to hostile folders: it answers, loads other models, and ends in time."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("transformers", reason="the extra hf is not installed")

from tests.app.connections import wait_for
from tests.model.foreign.test_hostile_folders import FILES, HARMFUL, SIZES
from tests.server_process import serving
from tests.tiny_checkpoints import save_checkpoint

STOP_SECONDS = 5

# Loads of the models of these names hang: where files are read, where a model is built, and in a
# library's code that can only be ended with the process.
HANGING = """
import time
from headlight.models import foreign as foreign_models, model_registry as registry
from headlight.model.foreign import loading, model
load_checked, build, describe = foreign_models.load_checked, model.build, registry.describe
def hang(folder, *_, **__):
    if folder.name.startswith('hanging'):
        time.sleep(1000)
def load(folder, *words, **options):
    hang(folder)
    return load_checked(folder, *words, **options)
def slow_build(folder, *words):
    if folder.path.name == 'building':
        with loading.quiet(), loading.building():
            time.sleep(1000)
    return build(folder, *words)
foreign_models.load_checked, model.build = load, slow_build
loading.BUILD_SECONDS = 1
"""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    parent = tmp_path_factory.mktemp("checkpoints")
    for name in ("gpt2", "bert", "t5"):
        save_checkpoint(name, parent / name)
    return parent


def ask(server, model, seconds=60):
    return server.client.post(
        "/api/v1/trace", json={"text": "a b", "model": model}, timeout=seconds
    )


def fill(models_dir, checkpoints, names):
    for name in names:
        shutil.copytree(checkpoints / "gpt2", models_dir / name)


def test_folders_that_turn_hostile_stop_no_other_model(checkpoints, tmp_path):
    cases = list((FILES | SIZES | HARMFUL).items())
    names = [f"case{number}" for number in range(len(cases))]
    fill(tmp_path, checkpoints, names)
    for name in ("bert", "t5"):
        shutil.copytree(checkpoints / name, tmp_path / name)
    with (
        serving("--device", "cpu", MODELS_DIR=tmp_path) as server,
        ThreadPoolExecutor(len(cases) + 2) as clients,
    ):
        for name, (_, (spoil, _)) in zip(names, cases, strict=True):
            spoil(tmp_path / name)
        asked = [clients.submit(ask, server, name) for name in names]
        during = clients.submit(ask, server, "bert")
        for _ in range(20):
            began = time.monotonic()
            assert server.client.get("/healthz", timeout=5).status_code == 200
            assert time.monotonic() - began < 2
        assert during.result().status_code == 200
        for name, (what, _), answer in zip(names, cases, asked, strict=True):
            problem = answer.result().json()
            assert problem["status"] == 503, (what, problem)
            assert problem["type"] == "urn:headlight:problem:model-unavailable", what
            assert name in problem["detail"], what
            assert "\n" not in problem["detail"], what
            assert str(tmp_path) not in problem["detail"], what
        assert ask(server, "t5").status_code == 200
        assert ask(server, None).status_code == 200
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0


def test_hostile_folders_are_refused_when_the_server_starts(checkpoints, tmp_path):
    cases = list((FILES | SIZES).items())
    names = [f"case{number}" for number in range(len(cases))]
    fill(tmp_path, checkpoints, [*names, "sound"])
    for name, (_, (spoil, _)) in zip(names, cases, strict=True):
        spoil(tmp_path / name)
    with serving("--device", "cpu", MODELS_DIR=tmp_path) as server:
        listed = server.client.get("/api/v1/models").json()
        assert {entry["id"] for entry in listed["unavailable"]} == set(names)
        assert ask(server, "sound").status_code == 200
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0


def test_loads_that_hang_are_given_up_and_stop_nothing(checkpoints, tmp_path):
    names = [*(f"hanging{number}" for number in range(4)), "building", "sound"]
    fill(tmp_path, checkpoints, names)
    shutil.copytree(checkpoints / "t5", tmp_path / "t5")
    with (
        serving("--device", "cpu", trouble=HANGING, MODELS_DIR=tmp_path, LOAD_SECONDS=8) as server,
        ThreadPoolExecutor(len(names)) as clients,
    ):
        asked = [clients.submit(ask, server, name) for name in names[1:5]]
        wait_for(lambda: state(server, "building") == "loading")
        assert server.client.get("/healthz", timeout=2).status_code == 200
        assert ask(server, None).status_code == 200
        for answer in asked:
            problem = answer.result().json()
            assert (problem["status"], problem["type"].split(":")[-1]) == (504, "model-too-slow")
        assert ask(server, "sound").status_code == 200, "after builds and loads that hang"
        assert ask(server, "building").json()["type"].endswith("model-unavailable")
        again = clients.submit(ask, server, "hanging0")
        wait_for(lambda: state(server, "hanging0") == "loading")
        assert ask(server, "t5").status_code == 200, "next to a load that hangs"
        began = time.monotonic()
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0
        assert time.monotonic() - began < STOP_SECONDS
        problem = again.result().json()
        assert (problem["status"], problem["type"].split(":")[-1]) == (503, "server-stopping")
        assert server.errors.count("Traceback") == 0


def state(server, model):
    return server.client.get(f"/api/v1/models/{model}").json().get("state")


def test_a_new_folder_that_hangs_is_named_and_stops_nothing(checkpoints, tmp_path):
    trouble = HANGING + (
        "registry.DESCRIBE_SECONDS = 2\n"
        "read = foreign_models.read_description\n"
        "foreign_models.read_description = lambda folder: hang(folder) or read(folder)\n"
    )
    fill(tmp_path, checkpoints, ["sound"])
    with (
        serving("--device", "cpu", trouble=trouble, MODELS_DIR=tmp_path) as server,
        ThreadPoolExecutor() as clients,
    ):
        fill(tmp_path, checkpoints, ["hanging"])
        listed = clients.submit(server.client.get, "/api/v1/models")
        assert ask(server, "sound").status_code == 200
        assert server.client.get("/healthz", timeout=2).status_code == 200
        named = {entry["id"]: entry["reason"] for entry in listed.result().json()["unavailable"]}
        assert "cannot be read within 2 s" in named["hanging"]
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0
