"""The corpus: files as documents and sentence pairs, documents as a stream of tokens in rows."""

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headlight.model.corpus import (
    CorpusError,
    SentencePair,
    TokenStream,
    corpus_files,
    read_documents,
    read_lines,
    read_members,
    read_pairs,
)

BOOKS = "First book.\nIts second line.\n<|endofbook|>\nSecond book.\n<|endoftext|>\n\n"
PAIRS = [SentencePair("Hi.", "Salut."), SentencePair('Say "no".', "Dis « non »\u00a0!")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.txt"


def rejects(*parts):
    """Expect an error that names these: the file, the line, the member."""
    return pytest.raises(CorpusError, check=lambda error: all(str(p) in str(error) for p in parts))


# --- documents ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [BOOKS, "\ufeff" + BOOKS.replace("\n", "\r\n")])
def test_a_separator_line_ends_a_document(path, text):
    path.write_bytes(text.encode())
    assert read_documents([path]) == ["First book.\nIts second line.\n", "Second book.\n"]


def test_json_lines_hold_a_document_each(tmp_path):
    path = tmp_path / "stories.jsonl"
    texts = ["One.\nTwo.\n<|endofbook|>\n", "naïve 🦊"]
    path.write_text("\n".join(json.dumps({"id": 1, "text": text}) for text in texts))
    assert read_documents([path]) == texts


@pytest.mark.parametrize("text", ["", "<|endofbook|>\n"])
def test_a_file_without_text_is_named(tmp_path, text):
    (tmp_path / "good.txt").write_text("text\n")
    (tmp_path / "empty.txt").write_text(text)
    with rejects(tmp_path / "empty.txt", "empty"):
        read_documents([tmp_path])


def test_a_corpus_of_no_file_is_rejected():
    with rejects("name at least one"):
        read_documents([])
    with rejects("name a .tsv"):
        read_pairs([])


# --- tokens ---------------------------------------------------------------------------------------


def test_each_document_is_closed_by_the_end_token(tokenizer):
    documents = ["The cat.\nThe dog.\n", "A tree.\n"]
    ids = TokenStream.encode(documents, tokenizer).ids.tolist()
    ends = [place for place, token in enumerate(ids) if token == tokenizer.end_id]
    assert len(ends) == 2
    assert ends[-1] == len(ids) - 1
    assert tokenizer.decode(ids[: ends[0]]) == documents[0]
    assert tokenizer.decode(ids[ends[0] : ends[1]]) == documents[1]


def test_starts_are_where_the_paragraphs_begin(tokenizer):
    documents = ["The cat.\n\nThe dog.\n", "A tree."]
    stream = TokenStream.encode(documents, tokenizer)
    assert stream.ids.dtype == stream.starts.dtype == torch.long
    bounds = [*stream.starts.tolist(), len(stream.ids)]
    spelled = [tokenizer.decode(stream.ids[begin:end].tolist()) for begin, end in pairwise(bounds)]
    assert spelled == ["The cat.\n\n", "The dog.\n", "A tree."]


# --- rows -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100, database=None)
@given(
    n_tokens=st.integers(10, 300),
    length=st.integers(2, 10),
    starts=st.sets(st.integers(1, 299), max_size=60),
)
def test_every_token_lies_in_a_row(n_tokens, length, starts):
    places = torch.tensor([0, *sorted(start for start in starts if start < n_tokens)])
    rows = TokenStream(torch.arange(n_tokens), places).row_starts(length).tolist()
    covered = {token for row in rows for token in range(row, row + length)}
    assert covered == set(range(n_tokens))
    assert rows == sorted(set(rows))
    # Fewer than half of a row's tokens lie in the next one, save in the last.
    assert all(after - row > length // 2 for row, after in pairwise(rows[:-1]))


def test_a_row_begins_with_a_paragraph_where_one_begins_early_enough():
    stream = TokenStream(torch.arange(30), torch.tensor([0, 8, 17, 19]))
    # 8 begins within row 0 and 17 within row 8; 19 begins too early in row 17, and 30 is the end.
    assert stream.row_starts(10).tolist() == [0, 8, 17, 20]
    # 8 lies in the first half of a row of 16, so a row for it would repeat most of it.
    assert stream.row_starts(16).tolist() == [0, 14]


def test_a_stream_shorter_than_a_row_is_rejected(tokenizer):
    stream = TokenStream(torch.arange(9), torch.tensor([0]))
    assert stream.row_starts(9).tolist() == [0]
    with rejects("9", "10"):
        stream.row_starts(10)


# --- sentence pairs -------------------------------------------------------------------------------


def write_pairs(folder, kind):
    """Write `PAIRS` as files of a kind; the names of two files sort against their order."""
    if kind == "txt":
        paths = [folder / "z.en.TXT", folder / "a.fr.txt"]
        for path, side in zip(paths, zip(*PAIRS, strict=True), strict=True):
            path.write_text("".join(f"{line}\n" for line in side))
        return paths
    path = folder / f"pairs.{kind}"
    written = ["\t".join(pair) if kind == "tsv" else json.dumps(pair._asdict()) for pair in PAIRS]
    path.write_text("".join(f"{line}\n" for line in written))
    return [path]


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "JSONL", "txt"])
def test_every_kind_of_file_gives_the_same_pairs(tmp_path, kind):
    paths = write_pairs(tmp_path, kind)
    assert read_pairs(paths) == PAIRS
    for path in paths:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_pairs(paths) == PAIRS


@pytest.mark.parametrize(
    ("line", "fault"),
    [("Hi.", "1 column"), ("Hi.\tSalut.\tCC BY", "3 columns"), ("\tSalut.", "empty source")],
)
def test_a_line_that_is_not_a_pair_is_named(tmp_path, line, fault):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"\na\tb\n{line}\na\n")
    with rejects(path, "line 3", fault):
        read_pairs([path])


@pytest.mark.parametrize("side", [0, 1])
def test_a_fault_of_a_parallel_file_is_named(tmp_path, side):
    paths = write_pairs(tmp_path, "txt")
    paths[side].write_text("a\n \n")
    with rejects(paths[side], "line 2"):
        read_pairs(paths)
    paths[side].write_text("a\nb\nc\n\n")
    with rejects(*paths, "4", "2"):
        read_pairs(paths)
    paths[side].write_text("")
    with rejects(paths[side], "empty"):
        read_pairs(paths)


@pytest.mark.parametrize("names", [["data"], ["data.tsv"], ["data.txt", "other.txt"]])
def test_a_folder_is_not_a_file_of_pairs(tmp_path, names):
    paths = [tmp_path / name for name in names]
    paths[0].mkdir()
    with rejects(paths[0], "folder"):
        read_pairs(paths)


@pytest.mark.parametrize(
    "names", [["a.txt"], ["a.txt", "b.txt", "c.txt"], ["a.txt", "b.tsv"], ["a.csv"]]
)
def test_files_that_make_no_pairs_are_named(tmp_path, names):
    with rejects(tmp_path / names[0], ".txt"):
        read_pairs([tmp_path / name for name in names])


# --- files ----------------------------------------------------------------------------------------


def test_text_files_are_found_at_any_depth(tmp_path):
    names = ["b/a.TXT", "b/c/d.txt", "b.txt", "a.txt", "a.txt.bak", "atxt", "book.txt/chapter.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    paths = [str(path.relative_to(tmp_path)) for path in corpus_files([tmp_path])]
    assert paths == ["a.txt", "b/a.TXT", "b/c/d.txt", "b.txt", "book.txt/chapter.txt"]
    assert corpus_files([Path("b"), Path("a")]) == [Path("b"), Path("a")]


def test_a_folder_without_text_files_is_named(tmp_path):
    (tmp_path / "notes.md").touch()
    with rejects(tmp_path, "no .txt"):
        corpus_files([tmp_path])


def test_a_folder_that_cannot_be_listed_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.txt").touch()
    locked = tmp_path / "locked"
    locked.mkdir()
    scandir = os.scandir

    def deny(place):
        if Path(place) == locked:
            raise PermissionError(13, "Permission denied", str(locked))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", deny)
    with rejects(locked, "Permission denied"):
        corpus_files([tmp_path])


@pytest.mark.parametrize(
    ("content", "line", "byte"),
    [
        ("one\ntwo\nthree é\n".encode("latin-1"), 3, "0xe9"),
        (b"\xef\xbb\xbfone\n\xe9\n\n", 2, "0xe9"),
    ],
)
def test_a_byte_that_is_not_utf_8_is_named_with_its_line(path, content, line, byte):
    path.write_bytes(content)
    with rejects(path, f"line {line}", byte):
        read_documents([path])


def test_nothing_else_ends_a_line(path):
    line = "a\u2028b\u0085c\vd\fe\rf"
    path.write_bytes(f"{line}\n\n{line}\n\n".encode())
    assert read_lines(path) == [line, "", line, ""]


@pytest.mark.parametrize("text", ["", "\n", " \r\n\t\n", "\ufeff"])
def test_a_file_without_a_line_is_named(path, text):
    path.write_text(text, encoding="utf-8")
    with rejects(path, "empty"):
        read_lines(path)


def test_members_come_in_the_order_asked_for_and_blank_lines_do_not_count(path):
    objects = [{"fr": "Salut.", "en": "Hi.", "n": 1}, {"en": " a\tb\r\nc\rd ", "fr": "é"}]
    path.write_text("\n\n".join(map(json.dumps, objects)) + "\n \n")
    assert read_members(path, ["en", "fr"]) == [("Hi.", "Salut."), (" a\tb\nc\rd ", "é")]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"en": "a"', "column 11"),
        ('{"en": 1}{}', "column 10"),
        ('["a", "b"]', '{"en": "…", "fr": "…"}'),
        ('{"en": "b"}', "'fr'"),
        ('{"en": " \\n", "fr": "b"}', "'en' is empty"),
        ('{"en": "a", "fr": "b\\ud800"}', "U+D800"),
    ],
)
def test_a_line_without_the_members_is_named(path, line, fault):
    path.write_text(f'{{"en": "a", "fr": "b"}}\n\n{line}\n')
    with rejects(path, "line 3", fault):
        read_members(path, ["en", "fr"])
