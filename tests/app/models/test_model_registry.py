"""Models are an allow-list of folders; a damaged one is reported, and the others work."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch

from headlight.model.cancellation import Cancelled
from headlight.models import model_registry as registry_module
from headlight.models.model_registry import Registry, registry_of
from headlight.problems import Problem
from headlight.settings import Settings
from tests.app.connections import wait_for

CPU = torch.device("cpu")


@pytest.fixture
def parent(tmp_path, zoo):
    """Return a directory of our own with one sound model."""
    shutil.copytree(zoo / "tiny", tmp_path / "sound")
    return tmp_path


def test_models_are_described_without_loading_weights(zoo, model_ids, monkeypatch):
    monkeypatch.setattr(registry_module, "load", None)
    registry = Registry([zoo], default="tiny", device=CPU)
    assert list(registry.descriptions) == model_ids
    assert registry.describe().id == "tiny"
    assert registry.describe("dense").config.moe is None


def test_a_model_that_the_device_cannot_hold_is_named_and_the_others_go_on(
    zoo, model_ids, monkeypatch
):
    def load(folder, **_):
        raise RuntimeError("out of memory")

    registry = Registry([zoo], default="tiny", device=CPU)
    before = registry.descriptions
    monkeypatch.setattr(registry_module, "load", load)
    with pytest.raises(Problem, match="the model 'tiny' cannot be used: out of memory"):
        registry.checkpoint()
    assert list(registry.descriptions) == [model for model in model_ids if model != "tiny"]
    assert list(before) == model_ids, "who was reading the map goes on reading it"


def test_a_lost_accelerator_says_nothing_of_the_model_that_was_being_loaded(zoo, monkeypatch):
    registry = Registry([zoo], default="tiny", device=CPU)
    lost = torch.AcceleratorError("CUDA error: unknown error")
    monkeypatch.setattr(registry_module, "load", _raise(lost))
    with pytest.raises(torch.AcceleratorError):
        registry.checkpoint()
    assert "tiny" in registry.descriptions


def _raise(error):
    def load(*_, **__):
        raise error

    return load


def test_the_directory_of_a_user_adds_models_and_replaces_none(zoo, model_ids, tmp_path, caplog):
    shutil.copytree(zoo / "dense", tmp_path / "mine")
    shutil.copytree(zoo / "dense", tmp_path / "tiny")
    registry = registry_of(Settings(zoo_dir=zoo, models_dir=tmp_path, device="cpu"))
    assert {each.id for each in registry.listed} == {*model_ids, "mine"}
    assert registry.describe("tiny").config.moe is not None
    assert "there is a model of that name" in caplog.text


def test_a_missing_directory_is_no_error(tmp_path, caplog):
    registry = registry_of(
        Settings(zoo_dir=tmp_path / "nowhere", models_dir=tmp_path, device="cpu")
    )
    assert registry.listed == []
    assert "there is no directory" in caplog.text


def test_files_and_hidden_folders_are_no_models(parent):
    (parent / "README.md").write_text("hello")
    (parent / ".git").mkdir()
    (parent / "__pycache__").mkdir()
    registry = Registry([parent], default="sound", device=CPU)
    assert set(registry.descriptions) | set(registry.unavailable) == {"sound"}


@pytest.fixture
def hangs(monkeypatch):
    """Yield an event; until it is set, loading a model hangs."""
    goes_on, load = Event(), registry_module.load

    def hang(folder, **options):
        goes_on.wait(60)
        return load(folder, **options)

    monkeypatch.setattr(registry_module, "load", hang)
    yield goes_on
    goes_on.set()


def test_a_load_that_is_given_up_changes_nothing_when_it_ends(parent, hangs):
    registry = Registry([parent], default="sound", device=CPU)
    with ThreadPoolExecutor() as pool:
        loading = pool.submit(registry.checkpoint, "sound")
        waiting = pool.submit(registry.checkpoint, "sound")
        wait_for(lambda: registry.status("sound").state == "loading")
        registry.give_up("sound", "it was too slow")
        assert registry.memory.n_bytes == 0
        hangs.set()
        with pytest.raises(Cancelled):
            loading.result(60)
        with pytest.raises(Problem, match="it was too slow"):
            waiting.result(60)
    assert not registry.is_loaded("sound")
    assert registry.memory.n_bytes == 0
    assert registry.unavailable == {"sound": "it was too slow"}


def test_a_folder_that_is_added_again_is_loaded_next_to_a_load_that_was_given_up(parent, hangs):
    registry = Registry([parent], default="sound", device=CPU)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(registry.checkpoint, "sound")
        wait_for(lambda: registry.status("sound").state == "loading")
        registry.give_up("sound", "it was too slow")
        registry.add(parent / "sound")
        second = pool.submit(registry.checkpoint, "sound")
        wait_for(lambda: registry.status("sound").state == "loading")
        assert not second.done()
        hangs.set()
        assert second.result(60).id == "sound"
        with pytest.raises(Cancelled):
            first.result(60)
    assert registry.is_loaded("sound")
    assert registry.memory.n_bytes > 0


@pytest.fixture
def hanging(monkeypatch):
    """Return a function that lets reading one folder hang until the event it returns is set."""

    def make(name):
        goes_on, describe = Event(), registry_module.describe

        def hang(folder):
            if folder.name == name:
                goes_on.wait(60)
            return describe(folder)

        monkeypatch.setattr(registry_module, "describe", hang)
        return goes_on

    return make


def test_a_folder_whose_files_hang_is_named_and_the_others_go_on(
    zoo, model_ids, hanging, monkeypatch
):
    goes_on = hanging("dense")
    monkeypatch.setattr(registry_module, "DESCRIBE_SECONDS", 0.5)
    registry = Registry([zoo], default="tiny", device=CPU)
    goes_on.set()
    assert sorted(registry.descriptions) == [model for model in model_ids if model != "dense"]
    assert registry.unavailable == {"dense": "dense: its files cannot be read within 0.5 s"}


def test_other_models_load_while_a_new_folder_hangs(parent, zoo, hanging):
    goes_on = hanging("hanging")
    registry = Registry([parent], default="sound", device=CPU)
    shutil.copytree(zoo / "dense", parent / "hanging")
    with ThreadPoolExecutor() as pool:
        pool.submit(registry.refresh)
        wait_for(lambda: "hanging" in registry.ids)
        assert pool.submit(registry.checkpoint, "sound").result(20).id == "sound"
        goes_on.set()
    assert "hanging" in registry.descriptions
