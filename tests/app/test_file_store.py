"""Files are compressed once, and those that nobody asks for are forgotten."""

import gzip
from concurrent.futures import ThreadPoolExecutor

import pytest

import headlight.file_store
from headlight.file_store import FileStore


@pytest.fixture
def counted(monkeypatch):
    """Paths, each noted when it is compressed."""
    noted = []
    real = headlight.file_store._read

    def read(path, coding):
        noted.append((path.name, coding))
        return real(path, coding)

    monkeypatch.setattr(headlight.file_store, "_read", read)
    return noted


def test_a_file_is_compressed_once_for_all_who_ask_at_the_same_time(tmp_path, counted):
    path = tmp_path / "a.js"
    path.write_text("export const a = 1;\n" * 20_000)
    store = FileStore()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: store.get(path, "gzip"), range(32)))
    assert counted == [("a.js", "gzip")]
    assert {id(file) for file in found} == {id(found[0])}
    assert gzip.decompress(found[0].content) == path.read_bytes()


def test_a_file_that_changed_is_read_again_under_another_name(tmp_path):
    path = tmp_path / "a.js"
    path.write_text("first")
    store = FileStore()
    first = store.get(path, "identity")
    path.write_text("the second")
    second = store.get(path, "identity")
    assert (first.content, second.content) == (b"first", b"the second")
    assert first.etag != second.etag


def test_what_nobody_asked_for_lately_is_forgotten_first(tmp_path, counted):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.write_bytes(b"x" * 400)
    store = FileStore(max_bytes=1_000)
    for path in (paths[0], paths[1], paths[0], paths[2]):
        store.get(path, "identity")
        assert store.n_bytes <= store.max_bytes
    counted.clear()
    for path in (paths[0], paths[2], paths[1]):
        store.get(path, "identity")
    assert counted == [("b", "identity")]


def test_a_file_larger_than_the_bound_is_given_and_not_kept(tmp_path, counted):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 2_000)
    store = FileStore(max_bytes=1_000)
    assert len(store.get(path, "identity").content) == len(store.get(path, "identity").content)
    assert store.n_bytes == 0
    assert len(counted) == 2


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        FileStore().get(tmp_path / "none", "gzip")
