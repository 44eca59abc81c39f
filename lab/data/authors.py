"""Split a corpus of books by author: the text to train on, and a file of each author left out.

    python -m headlight.lab.data.authors more.txt more_SOURCES.tsv runs/authors \\
        --leave-out "Sophie May" --leave-out "Madeline Brandeis" --leave-out "Andrew Lang"

The table has a row a book in the order of the file, with the columns ``title`` and ``author``.
``kept.txt`` has the books of all other authors. The file of an author, ``sophie_may.txt``, has an
equal share of each of the author's books, from its beginning, in whole paragraphs.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Collection, Sequence
from pathlib import Path

from headlight.model.corpus import CorpusError, read_documents

END = "<|endofbook|>\n"
MAX_BYTES = 50_000


def authors_of(table: Path) -> list[str]:
    """Read the author of each book from a table.

    Raises:
        CorpusError: the table cannot be read or has no column ``author``.
    """
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            return [row["author"] for row in rows]
    except (OSError, UnicodeDecodeError, KeyError) as error:
        raise CorpusError(f"{table} is no table of books with a column author: {error}") from error


def split(
    books: Sequence[str],
    authors: Sequence[str],
    left_out: Collection[str],
    max_bytes: int = MAX_BYTES,
) -> tuple[list[str], dict[str, str]]:
    """Split books into those to train on and the text of each author left out.

    Args:
        books: the texts.
        authors: of each of them.
        left_out: the authors whose books are not trained on.
        max_bytes: of an author's text.

    Returns:
        The books of the other authors, and a text for each author left out.

    Raises:
        CorpusError: the number of books and authors differs, or an author has no book.
    """
    if len(books) != len(authors):
        raise CorpusError(f"the text has {len(books)} books and the table {len(authors)} rows")
    kept = [book for book, author in zip(books, authors, strict=True) if author not in left_out]
    texts = {}
    for name in left_out:
        mine = [book for book, author in zip(books, authors, strict=True) if author == name]
        if not mine:
            raise CorpusError(f"the table has no book by {name!r}; write the name as it does")
        share = max_bytes // len(mine)
        texts[name] = "".join(f"{_beginning(book, share)}{END}" for book in mine)
    return kept, texts


def _beginning(book: str, max_bytes: int) -> str:
    """Return the first paragraphs of a book, as many as fit."""
    kept, size = [], 0
    for line in book.splitlines(keepends=True):
        size += len(line.encode())
        if size > max_bytes:
            break
        kept.append(line)
    return "".join(kept)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--leave-out", action="append", required=True, metavar="AUTHOR")
    asked = parser.parse_args(arguments)
    kept, texts = split(read_documents([asked.text]), authors_of(asked.table), asked.leave_out)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "kept.txt").write_text("".join(f"{book}{END}" for book in kept), "utf-8")
    for name, text in texts.items():
        path = asked.out / f"{name.lower().replace(' ', '_')}.txt"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
