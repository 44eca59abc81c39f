"""Compressed files, Parquet and UTF-16, read as plain text."""

import bz2
import gzip
import json
import lzma
import math

import pytest
import zstandard

from headlight.lab.data.documents import Unusable, stream_documents
from headlight.model.corpus import CorpusError, corpus_files, read_documents
from headlight.model.unpacking import plain

TEXT = "One day.\n<|endofstory|>\nAnother été.\n"
PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("ending", PACK)
def test_a_compressed_file_has_the_documents_of_the_plain_one(tmp_path, ending):
    (tmp_path / "a.txt").write_text(TEXT)
    packed = tmp_path / f"b.txt.{ending}"
    packed.write_bytes(PACK[ending](TEXT.encode()))
    documents = list(stream_documents([packed]))
    texts = [document.text for document in stream_documents([tmp_path / "a.txt"])]
    assert [document.text for document in documents] == texts == ["One day.", "Another été."]
    assert documents[1].source == f"{packed}:3"
    assert read_documents([packed]) == read_documents([tmp_path / "a.txt"])
    assert corpus_files([tmp_path]) == [tmp_path / "a.txt", packed]


@pytest.mark.parametrize("ending", PACK)
def test_a_damaged_archive_is_named(tmp_path, ending):
    packed = tmp_path / f"b.jsonl.{ending}"
    packed.write_bytes(PACK[ending](json.dumps({"text": "whole " * 400}).encode())[:-9])
    (tmp_path / "a.txt").write_text("whole")
    dropped = []
    assert len(list(stream_documents([tmp_path], drop=dropped.append))) == 1
    assert [(each.path, each.line, each.kind) for each in dropped] == [
        (packed, 0, "unreadable_file")
    ]
    with pytest.raises(CorpusError, match="cannot be unpacked"):
        plain(packed)


def test_rows_of_a_parquet_file_are_documents_with_their_members(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"text": ["One.", "Two."], "score": [0.5, math.nan]})
    parquet.write_table(table, tmp_path / "a.parquet")
    documents = list(stream_documents([tmp_path]))
    assert [document.text for document in documents] == ["One.", "Two."]
    assert [document.members for document in documents] == [{"score": 0.5}, {"score": None}]


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_text("not a table")
    with pytest.raises(CorpusError, match=r"a\.parquet is no readable Parquet file"):
        list(stream_documents([tmp_path]))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_of_utf_16_is_believed(tmp_path, encoding):
    (tmp_path / "a.txt").write_bytes(("\ufeff" + TEXT).encode(encoding))
    assert [each.text for each in stream_documents([tmp_path])] == ["One day.", "Another été."]


def test_a_file_that_changed_is_unpacked_again(tmp_path):
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(b"First."))
    assert [each.text for each in stream_documents([packed])] == ["First."]
    packed.write_bytes(gzip.compress(b"Second, and longer."))
    assert [each.text for each in stream_documents([packed])] == ["Second, and longer."]


# --- what cannot be read --------------------------------------------------------------------------


def dropped_of(path):
    dropped: list[Unusable] = []
    texts = [document.text for document in stream_documents([path], drop=dropped.append)]
    return texts, [(each.line, each.kind) for each in dropped]


def test_lines_that_cannot_be_read_are_left_out_with_their_reasons(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [
        b'{"text": "good"}',
        b'{"text": "cut',
        b'{"text": "  "}',
        b'{"text": "caf\xe9"}',
        b'{"other": 1}',
        b'{"text": "last", "score": NaN, "size": 1e999}',
    ]
    path.write_bytes(b"\n".join(lines))
    broken = [(n, "broken_line") for n in (2, 3)] + [(4, "wrong_encoding"), (5, "broken_line")]
    assert dropped_of(path) == (["good", "last"], broken)
    last = list(stream_documents([path], drop=lambda unusable: None))[-1]
    assert last.members == {"score": None, "size": None}


def test_a_wrong_byte_costs_its_line_and_no_other(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"One\ncaf\xe9\ntwo\n<|endofstory|>\nThree\n")
    assert dropped_of(path) == (["One\ntwo", "Three"], [(2, "wrong_encoding")])


def test_a_binary_file_and_an_empty_one_are_left_out_whole(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"text\nthen \0 bytes\n")
    (tmp_path / "b.txt").write_bytes(b"\n\n")
    (tmp_path / "c.txt").write_bytes(b"good\n")
    assert dropped_of(tmp_path) == (["good"], [(0, "binary"), (0, "empty_file")])


def test_a_folder_says_which_files_have_another_ending(tmp_path):
    folder = tmp_path / ".data"  # a folder that is named is not hidden
    folder.mkdir()
    (folder / "a.txt").write_text("Once upon a time.\n")
    (folder / "scan.pdf").write_bytes(b"%PDF")
    (folder / ".hidden").write_text("x")
    dropped = []
    assert len(list(stream_documents([folder], drop=dropped.append))) == 1
    assert [(each.path.name, each.kind) for each in dropped] == [("scan.pdf", "other_ending")]
