"""Files are written completely or not at all, and errors are reported in plain words."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from headlight.commands import output
from headlight.commands.output import DestinationError, check, in_words, writing


def test_a_file_is_there_once_it_is_whole(tmp_path):
    path = tmp_path / "out.csv"
    with writing(path) as file:
        file.write(b"a,b\n")
        assert not path.exists()
    assert path.read_bytes() == b"a,b\n"
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]


def test_an_existing_file_is_replaced_only_if_forced(tmp_path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"old")
    with pytest.raises(DestinationError, match=r"out\.csv already exists; .* --force"):
        check(path)
    with writing(path, is_forced=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_block_that_raises_writes_nothing(tmp_path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"old")
    with suppress(RuntimeError), writing(path, is_forced=True) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]


def test_a_pipe_is_written_into(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    contents: list[bytes] = []
    reader = threading.Thread(target=lambda: contents.append(path.read_bytes()))
    reader.start()
    with writing(path) as file:
        file.write(b"1")
    reader.join(10)
    assert contents == [b"1"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is a folder; name a file in it"),
        ("none/out", "there is no folder .*none; make it, or name another"),
    ],
)
def test_a_destination_is_checked_before_anything_is_computed(tmp_path, name, reason):
    (tmp_path / "file").touch()
    with pytest.raises(DestinationError, match=f"^cannot write .*: {reason}$"):
        check(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk_is_reported():
    with (
        pytest.raises(DestinationError, match=r"^cannot write /dev/full: no space left on device$"),
        writing(Path("/dev/full")) as file,
    ):
        file.write(b"1" * 100_000)


def test_errors_of_the_system_are_reported_without_their_number():
    assert in_words(PermissionError(13, "Permission denied", "a")) == "a: permission denied"
    assert in_words(OSError("a message")) == "a message"
    assert in_words(ValueError("a rule")) == "a rule"


def test_a_log_says_the_time_that_is_left(monkeypatch, capsys):
    moments = iter([0.0, 30.0, 30.0, 30.0, 31.0, 31.0])
    monkeypatch.setattr(output, "monotonic", lambda: next(moments))
    monkeypatch.setattr(output, "notes", Console(highlight=False, stderr=True))
    with output.progress("reading") as report:
        report(0.25)
        report(0.26)
    assert capsys.readouterr().err == "reading: 25% · 0:01:30 left\n"
