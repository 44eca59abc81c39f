"""A file of a model's folder is looked at before it is opened."""

import os
from pathlib import Path

import pytest

from headlight.model import checkpoint_files as folder_module
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


def test_a_file_of_as_many_bytes_as_it_may_have_is_taken(home):
    assert require_file(home, "file", 5) == home / "file"


def test_one_byte_more_is_refused(home):
    with pytest.raises(CheckpointError, match="file: 5 bytes are more than the 4 that it can need"):
        require_file(home, "file", 4)


def test_a_folder_that_is_a_link_itself_is_its_own_home(home):
    (home.parent / "link").symlink_to(home)
    assert require_file(home.parent / "link", "file", 5).read_bytes() == b"12345"


def test_a_link_to_a_neighbour_whose_name_begins_alike_leads_out(home):
    (home.parent / "home-too").mkdir()
    (home.parent / "home-too" / "file").touch()
    (home / "link").symlink_to("../home-too/file")
    with pytest.raises(CheckpointError, match="a link that leads out of the folder"):
        require_file(home, "link", 5)


def test_a_pipe_is_not_waited_for(home):
    os.mkfifo(home / "pipe")
    with pytest.raises(CheckpointError, match="this is no file with contents"):
        require_file(home, "pipe", 5)


def test_this_machine_says_how_much_memory_it_has():
    found = memory_bytes()
    assert found is None or 2**28 < found < 2**50


def test_a_model_larger_than_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(folder_module, "memory_bytes", lambda: 4_000_000_000)
    require_memory(Path("config.json"), 10**9)
    message = r"^config.json: a model of these sizes needs 4.4 GB of memory; this machine has 4.0"
    with pytest.raises(CheckpointError, match=message):
        require_memory(Path("config.json"), 11 * 10**8)


def test_where_nobody_says_how_much_there_is_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(folder_module, "memory_bytes", lambda: None)
    require_memory(Path("config.json"), 10**18)
