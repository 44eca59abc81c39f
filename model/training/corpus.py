"""What a model is trained on: documents, as one long stream of token ids, and sentence pairs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.model.tokenizer import Tokenizer
from headlight.model.training.corpus_files import CorpusError, corpus_files, read_members, read_text
from headlight.model.training.sentence_pairs import SentencePair, read_pairs

# Recipes take all they need of a corpus from here.
__all__ = [
    "CorpusError",
    "SentencePair",
    "TokenStream",
    "corpus_files",
    "lines",
    "read_documents",
    "read_pairs",
]

SEPARATOR = re.compile(r"^<\|endof\w+\|>\n?", re.MULTILINE)


def read_documents(paths: Iterable[Path]) -> list[str]:
    """The documents of some files, in the order given.

    What a file holds is told by its name: ``.jsonl`` holds a document a line, the member ``text``
    of a JSON object. Any other file is text, and lines like ``<|endofbook|>`` stand between its
    documents. A folder stands for every ``.txt`` file below it, sorted.

    The text is the file's own, save that CR LF becomes LF and a byte order mark is dropped.

    Raises:
        CorpusError: a file is missing, empty, or not UTF-8, a line of JSON is no document (the
            message names the line), or a folder holds no ``.txt`` file.
    """
    documents = [document for path in corpus_files(paths) for document in _read_file(path)]
    if not documents:
        raise CorpusError("there is no corpus; name at least one text file")
    return documents


def lines(documents: Iterable[str]) -> Iterator[str]:
    """The lines of some documents, their ends included: what a tokenizer learns from."""
    for document in documents:
        yield from document.splitlines(keepends=True)


def _read_file(path: Path) -> list[str]:
    if path.suffix.lower() == ".jsonl":
        return [text for (text,) in read_members(path, ["text"])]
    documents = [document for document in SEPARATOR.split(read_text(path)) if document.strip()]
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
