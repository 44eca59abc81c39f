"""Models are an allow-list of folders; a damaged one is named, and the others go on."""

import shutil

import pytest
import torch

from headlight import registry as registry_module
from headlight.errors import Problem
from headlight.registry import Registry, registry_of
from headlight.settings import Settings

CPU = torch.device("cpu")


@pytest.fixture
def parent(tmp_path, zoo):
    """A directory of our own with one sound model."""
    shutil.copytree(zoo / "tiny", tmp_path / "sound")
    return tmp_path


def test_models_are_described_without_loading_weights(zoo, model_ids, monkeypatch):
    monkeypatch.setattr(registry_module, "load", None)
    found = Registry([zoo], default="tiny", device=CPU)
    assert list(found.descriptions) == model_ids
    assert found.describe().id == "tiny"
    assert found.describe("dense").config.moe is None


def test_a_model_that_the_device_cannot_hold_is_named_and_the_others_go_on(
    zoo, model_ids, monkeypatch
):
    def load(folder, **_):
        raise RuntimeError("out of memory")

    found = Registry([zoo], default="tiny", device=CPU)
    before = found.descriptions
    monkeypatch.setattr(registry_module, "load", load)
    with pytest.raises(Problem, match="the model 'tiny' cannot be used: out of memory"):
        found.checkpoint()
    assert list(found.descriptions) == [model for model in model_ids if model != "tiny"]
    assert list(before) == model_ids, "who was reading the map goes on reading it"


def test_a_lost_accelerator_says_nothing_of_the_model_that_was_being_loaded(zoo, monkeypatch):
    found = Registry([zoo], default="tiny", device=CPU)
    lost = torch.AcceleratorError("CUDA error: unknown error")
    monkeypatch.setattr(registry_module, "load", _raise(lost))
    with pytest.raises(torch.AcceleratorError):
        found.checkpoint()
    assert "tiny" in found.descriptions


def _raise(error):
    def load(*_, **__):
        raise error

    return load


def test_a_directory_of_ones_own_adds_models_and_replaces_none(zoo, model_ids, tmp_path, caplog):
    shutil.copytree(zoo / "dense", tmp_path / "mine")
    shutil.copytree(zoo / "dense", tmp_path / "tiny")
    found = registry_of(Settings(zoo_dir=zoo, models_dir=tmp_path, device="cpu"))
    assert set(found.descriptions) == {*model_ids, "mine"}
    assert found.describe("tiny").config.moe is not None
    assert "there is a model of that name" in caplog.text


def test_a_missing_directory_is_no_error(tmp_path, caplog):
    found = Registry([tmp_path / "nowhere"], default="tiny", device=CPU)
    assert found.descriptions == {}
    assert "there is no directory" in caplog.text


def test_files_and_hidden_folders_are_no_models(parent):
    (parent / "README.md").write_text("hello")
    (parent / ".git").mkdir()
    (parent / "__pycache__").mkdir()
    found = Registry([parent], default="sound", device=CPU)
    assert set(found.descriptions) | set(found.unavailable) == {"sound"}
