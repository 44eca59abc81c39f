"""The files of a checkpoint are checked before they are opened."""

from pathlib import Path

import pytest

from headlight.model import checkpoint_files
from headlight.model.checkpoint_files import (
    CheckpointError,
    memory_bytes,
    require_file,
    require_memory,
)


@pytest.fixture
def home(tmp_path):
    """A folder with one file of five bytes."""
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
