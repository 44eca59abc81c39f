"""Files as documents, and documents as one long stream of tokens, cut into rows."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headlight.model.tokenizer import Tokenizer
from headlight.model.training.corpus import CorpusError, TokenStream, lines, read_documents

BOOKS = "First book.\nIts second line.\n<|endofbook|>\nSecond book.\n<|endoftext|>\n\n"


def refused(path: Path, message: str) -> None:
    with pytest.raises(CorpusError, match=f"^{re.escape(f'{path}{message}')}$"):
        read_documents([path])


# --- files ----------------------------------------------------------------------------------------


def test_a_separator_line_ends_a_document(tmp_path: Path) -> None:
    path = tmp_path / "books.txt"
    path.write_text(BOOKS)
    assert read_documents([path]) == ["First book.\nIts second line.\n", "Second book.\n"]


def test_a_separator_inside_a_line_is_text(tmp_path: Path) -> None:
    path = tmp_path / "books.txt"
    path.write_text("About <|endofbook|> marks.\n")
    assert read_documents([path]) == ["About <|endofbook|> marks.\n"]


def test_files_are_read_in_the_order_given(tmp_path: Path) -> None:
    for name in "ba":
        (tmp_path / name).write_text(f"{name}\n")
    assert read_documents([tmp_path / "b", tmp_path / "a"]) == ["b\n", "a\n"]


def test_text_is_read_as_it_is(tmp_path: Path) -> None:
    text = "naïve — 你好 🦊\n\n  indented\ttabbed"
    (tmp_path / "a").write_text(text, encoding="utf-8")
    assert read_documents([tmp_path / "a"]) == [text]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    refused(tmp_path / "none.txt", " cannot be read: No such file or directory")


@pytest.mark.parametrize("text", ["", " \n\n\t\n", "<|endofbook|>\n", "\n<|endofbook|>\n \n"])
def test_a_file_without_text_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.txt"
    path.write_text(text)
    refused(path, " is empty; it needs text, one paragraph a line")


def test_a_file_that_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("one\ntwo\nthree é\n".encode("latin-1"))
    refused(path, " is not UTF-8: line 3 holds 0xe9")
    path.write_bytes(b"\xff\xfeo\0n\0e\0")
    refused(path, " is not UTF-8: line 1 holds 0xff")


def test_no_file_at_all_is_refused() -> None:
    with pytest.raises(CorpusError, match=r"^there is no corpus; name at least one text file$"):
        read_documents([])


def test_a_file_of_windows_reads_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "books.txt"
    path.write_bytes(b"\xef\xbb\xbf" + BOOKS.replace("\n", "\r\n").encode())
    assert read_documents([path]) == ["First book.\nIts second line.\n", "Second book.\n"]


def test_a_folder_stands_for_the_text_files_below_it(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    for name in ("b.txt", "a.txt", "books/c.txt", "notes.md"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "last").write_text("last\n")
    expected = ["a.txt\n", "b.txt\n", "books/c.txt\n", "last\n"]
    assert read_documents([tmp_path, tmp_path / "last"]) == expected


def test_an_empty_file_in_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("text\n")
    (tmp_path / "empty.txt").write_text("\n")
    message = f"{tmp_path / 'empty.txt'} is empty; it needs text, one paragraph a line"
    with pytest.raises(CorpusError, match=f"^{re.escape(message)}$"):
        read_documents([tmp_path])


def test_json_lines_hold_a_document_each(tmp_path: Path) -> None:
    path = tmp_path / "stories.jsonl"
    texts = ["One.\nTwo.\n<|endofbook|>\n", "naïve 🦊"]
    path.write_text("\n".join(json.dumps({"id": 1, "text": text}) for text in texts))
    assert read_documents([path]) == texts


def test_a_line_of_json_that_is_no_document_is_named(tmp_path: Path) -> None:
    path = tmp_path / "stories.jsonl"
    path.write_text('{"text": "a"}\n{"story": "b"}\n')
    refused(path, """, line 2 has no member 'text'; write it as {"text": "…"}""")


def test_the_lines_of_documents_add_up_to_them() -> None:
    assert list(lines(["One.\n\nTwo.", "Three.\n"])) == ["One.\n", "\n", "Two.", "Three.\n"]


# --- tokens ---------------------------------------------------------------------------------------


def test_each_document_is_closed_by_the_end_token(tokenizer: Tokenizer) -> None:
    documents = ["The cat.\nThe dog.\n", "A tree.\n"]
    ids = TokenStream.encode(documents, tokenizer).ids.tolist()
    ends = [place for place, token in enumerate(ids) if token == tokenizer.end_id]
    assert len(ends) == 2
    assert ends[-1] == len(ids) - 1
    assert tokenizer.decode(ids[: ends[0]]) == documents[0]
    assert tokenizer.decode(ids[ends[0] : ends[1]]) == documents[1]


def test_starts_are_where_the_paragraphs_begin(tokenizer: Tokenizer) -> None:
    documents = ["The cat.\n\nThe dog.\n", "A tree."]
    stream = TokenStream.encode(documents, tokenizer)
    assert stream.ids.dtype == stream.starts.dtype == torch.long
    bounds = [*stream.starts.tolist(), len(stream.ids)]
    spelled = [tokenizer.decode(stream.ids[begin:end].tolist()) for begin, end in pairwise(bounds)]
    assert spelled == ["The cat.\n\n", "The dog.\n", "A tree."]


def test_a_document_of_one_token_has_no_paragraph(tokenizer: Tokenizer) -> None:
    stream = TokenStream.encode(["a"], tokenizer)
    assert len(stream.ids) == 2
    assert len(stream.starts) == 0
    assert stream.row_starts(2).tolist() == [0]


# --- rows -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100, database=None)
@given(
    n_tokens=st.integers(10, 300),
    length=st.integers(2, 10),
    starts=st.sets(st.integers(1, 299), max_size=60),
)
def test_every_token_lies_in_a_row(n_tokens: int, length: int, starts: set[int]) -> None:
    places = torch.tensor([0, *sorted(start for start in starts if start < n_tokens)])
    rows = TokenStream(torch.arange(n_tokens), places).row_starts(length).tolist()
    covered = {token for row in rows for token in range(row, row + length)}
    assert covered == set(range(n_tokens))
    assert rows == sorted(set(rows))
    # Fewer than half of a row's tokens lie in the next one, save in the last.
    assert all(after - row > length // 2 for row, after in pairwise(rows[:-1]))


def test_a_row_begins_with_a_paragraph_where_one_begins_early_enough() -> None:
    stream = TokenStream(torch.arange(30), torch.tensor([0, 8, 17, 19]))
    # 8 begins within row 0 and 17 within row 8; 19 begins too early in row 17, and 30 is the end.
    assert stream.row_starts(10).tolist() == [0, 8, 17, 20]
    # 8 lies in the first half of a row of 16, so a row of its own would repeat most of it.
    assert stream.row_starts(16).tolist() == [0, 14]


def test_a_stream_shorter_than_a_row_is_refused(tokenizer: Tokenizer) -> None:
    stream = TokenStream(torch.arange(9), torch.tensor([0]))
    assert stream.row_starts(9).tolist() == [0]
    with pytest.raises(CorpusError, match=r"^the corpus has 9 tokens; training needs at least 10$"):
        stream.row_starts(10)
