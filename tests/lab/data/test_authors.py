"""A corpus split by author."""

import pytest

from headlight.lab.data.authors import authors_of, main, split
from headlight.model.corpus import CorpusError

BOOKS = ["One.\n" * 10, "Two.\n" * 10, "Three.\n" * 10]
AUTHORS = ["Ann", "Bob", "Ann"]


def test_the_books_of_an_author_left_out_are_not_kept():
    kept, texts = split(BOOKS, AUTHORS, ["Ann"], max_bytes=28)

    assert kept == ["Two.\n" * 10]
    end = "<|endofbook|>\n"
    expected = "One.\n" * 2 + end + "Three.\n" * 2 + end
    assert texts == {"Ann": expected}, "an equal share of each, in whole paragraphs"


def test_an_author_without_a_book_is_an_error():
    with pytest.raises(CorpusError, match="no book by 'Cid'"):
        split(BOOKS, AUTHORS, ["Cid"])


def test_a_table_of_another_text_is_an_error():
    with pytest.raises(CorpusError, match="3 books and the table 2 rows"):
        split(BOOKS, AUTHORS[:2], ["Ann"])


def test_a_table_without_authors_is_an_error(tmp_path):
    table = tmp_path / "table.tsv"
    table.write_text("title\nOne\n")
    with pytest.raises(CorpusError, match="column author"):
        authors_of(table)


def test_the_command_writes_a_file_for_each_author(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{book}<|endofbook|>\n" for book in BOOKS))
    (tmp_path / "table.tsv").write_text("author\ttitle\nAnn\t1\nBob Lee\t2\nAnn\t3\n")

    main([*(str(tmp_path / name) for name in ("text.txt", "table.tsv", "out")),
          "--leave-out", "Bob Lee"])  # fmt: skip

    assert (tmp_path / "out" / "bob_lee.txt").read_text() == f"{BOOKS[1]}<|endofbook|>\n"
    assert (tmp_path / "out" / "kept.txt").read_text().count("<|endofbook|>") == 2
