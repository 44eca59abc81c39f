"""The files of a checkpoint are checked before they are opened."""

import os
import threading
from pathlib import Path

import pytest

from headlight.model.checkpoint import files as checkpoint_files
from headlight.model.checkpoint import loading
from headlight.model.checkpoint.files import (
    MAX_BYTES,
    TOKENIZER,
    WEIGHTS,
    CheckpointError,
    memory_bytes,
    open_tensors,
    require_file,
    require_memory,
)
from headlight.model.checkpoint.profile import HEADS
from headlight.model.checkpoint.run_curves import CURVES


@pytest.fixture
def home(tmp_path):
    """Return a folder with one file of five bytes."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").write_bytes(b"12345")
    return tmp_path / "home"


def test_a_file_may_have_as_many_bytes_as_its_limit(home):
    assert require_file(home, "file", 5) == home / "file"
    with pytest.raises(CheckpointError, match="file: 5 bytes exceed the limit of 4"):
        require_file(home, "file", 4)


def test_the_folder_itself_may_be_a_symbolic_link(home):
    (home.parent / "link").symlink_to(home)
    assert require_file(home.parent / "link", "file", 5).read_bytes() == b"12345"


def test_a_link_to_a_sibling_whose_name_has_the_same_prefix_leaves_the_folder(home):
    (home.parent / "home-too").mkdir()
    (home.parent / "home-too" / "file").touch()
    (home / "link").symlink_to("../home-too/file")
    with pytest.raises(CheckpointError, match="must not leave the folder"):
        require_file(home, "link", 5)


def test_a_model_larger_than_the_memory_is_an_error(monkeypatch):
    monkeypatch.setattr(checkpoint_files, "memory_bytes", lambda: 4_000_000_000)
    require_memory(Path("config.json"), 10**9)
    with pytest.raises(CheckpointError, match=r"needs 4\.4 GB of memory; this machine has 4\.0"):
        require_memory(Path("config.json"), 11 * 10**8)


def test_the_memory_of_this_machine_may_be_unknown(monkeypatch):
    assert (found := memory_bytes()) is None or 2**28 < found < 2**50
    monkeypatch.setattr(checkpoint_files, "memory_bytes", lambda: None)
    require_memory(Path("config.json"), 10**18)


def outcome(work):
    """Return the error of work, which is not waited for if it hangs."""
    errors = []

    def run():
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    return errors[0] if errors else None


@pytest.fixture
def model_folder(make_folder):
    """Return the folder of a model."""
    return make_folder()


@pytest.fixture
def replaced(monkeypatch):
    """Paths pass their check, as that of a file does that is replaced by a pipe after it."""

    def require(folder, name, _):
        return folder / name

    for module in (checkpoint_files, loading):
        monkeypatch.setattr(module, "require_file", require)


@pytest.mark.parametrize("name", [*MAX_BYTES, WEIGHTS, CURVES, HEADS])
def test_a_pipe_that_replaces_a_file_after_its_check_is_not_waited_for(
    name, model_folder, replaced
):
    (model_folder / name).unlink(missing_ok=True)
    os.mkfifo(model_folder / name)
    error = outcome(lambda: loading.describe(model_folder))
    assert isinstance(error, CheckpointError)
    assert f"{name}: not a regular file" in str(error)


@pytest.mark.parametrize("name", [TOKENIZER, WEIGHTS])
def test_a_pipe_that_replaces_a_file_before_it_is_loaded_is_not_waited_for(
    name, model_folder, replaced
):
    description = loading.describe(model_folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "describe", lambda _: description)
        (model_folder / name).unlink()
        os.mkfifo(model_folder / name)
        error = outcome(lambda: loading.load_checkpoint(model_folder))
    assert isinstance(error, CheckpointError)
    assert f"{name}: not a regular file" in str(error)


def test_tensors_are_those_of_the_file_that_was_opened(model_folder, monkeypatch):
    """The name leads to a pipe once the file is open."""
    is_open = checkpoint_files.open_file

    def opened(folder, name, max_bytes):
        file = is_open(folder, name, max_bytes)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        return file

    monkeypatch.setattr(checkpoint_files, "open_file", opened)
    names = []

    def read():
        with open_tensors(model_folder, WEIGHTS, 2**30) as file:
            names.extend(file.keys())

    assert outcome(read) is None
    assert names
