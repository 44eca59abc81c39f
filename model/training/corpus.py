"""Text to train on: files of paragraphs, one a line, as one long stream of token ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from model.tokenizer import Tokenizer

SEPARATOR = re.compile(r"^<\|endof\w+\|>\n?", re.MULTILINE)


class CorpusError(ValueError):
    """A corpus that cannot be used; the message names the file and what is wrong."""


def read_documents(paths: Iterable[Path]) -> list[str]:
    """The documents of some text files: what stands between lines like ``<|endofbook|>``.

    Raises:
        CorpusError: a file is missing, empty, or not UTF-8 (with the line where it breaks).
    """
    documents = [document for path in paths for document in _read_file(Path(path))]
    if not documents:
        raise CorpusError("there is no corpus; name at least one text file")
    return documents


def _read_file(path: Path) -> list[str]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CorpusError(
            f"{path} is not UTF-8: line {line} holds {error.object[error.start]:#x}"
        ) from error
    documents = [document for document in SEPARATOR.split(text) if document.strip()]
    if not documents:
        raise CorpusError(f"{path} is empty; it needs text, one paragraph a line")
    return documents


@dataclass(frozen=True)
class TokenStream:
    """All documents one after the other, each closed by the end token.

    ``ids`` (token) and ``starts`` (paragraph), the places in ``ids`` where a paragraph begins.
    """

    ids: Int[Tensor, " token"]
    starts: Int[Tensor, " paragraph"]

    @classmethod
    def encode(cls, documents: Sequence[str], tokenizer: Tokenizer) -> TokenStream:
        """Cut the documents into tokens."""
        ids: list[int] = []
        starts: list[int] = []
        for pieces in _paragraph_ids(documents, tokenizer):
            if len(pieces) > 1:  # a lone token is a blank line or the end
                starts.append(len(ids))
            ids.extend(pieces)
        return cls(torch.tensor(ids, dtype=torch.long), torch.tensor(starts, dtype=torch.long))

    def row_starts(self, length: int) -> Int[Tensor, " row"]:
        """Cut the stream into rows that begin with a paragraph where one begins early enough.

        Each row starts at the last paragraph that the row before it still reaches, so that
        every token lies in a row and few lie in two.

        Args:
            length: tokens in a row.

        Raises:
            CorpusError: the stream is shorter than one row.
        """
        last = len(self.ids) - length
        if last < 0:
            raise CorpusError(
                f"the corpus has {len(self.ids)} tokens; training needs at least {length}"
            )
        rows = [0]
        while rows[-1] < last:
            reached = rows[-1] + length
            place = int(torch.searchsorted(self.starts, reached, right=True)) - 1
            start = int(self.starts[place]) if place >= 0 else 0
            rows.append(min(start if start > rows[-1] + length // 2 else reached, last))
        return torch.tensor(rows)


def _paragraph_ids(documents: Sequence[str], tokenizer: Tokenizer) -> Iterator[list[int]]:
    for document in documents:
        yield from tokenizer.encode_ids(document.splitlines(keepends=True))
        yield [tokenizer.end_id]
