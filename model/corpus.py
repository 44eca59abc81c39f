"""The corpus: files as documents or sentence pairs, and documents as one stream of token ids.

Every file is UTF-8. A byte order mark is dropped and CR LF becomes LF; nothing else changes, so
the text keeps its Unicode normalization form. Errors name the file and the line.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.model.tokenizer import Tokenizer
from headlight.model.unpacking import CorpusError as CorpusError
from headlight.model.unpacking import bare_suffix as bare_suffix
from headlight.model.unpacking import plain

KINDS = (".txt", ".jsonl", ".parquet")
MAX_BYTES = 2**24
"""The longest line of a corpus that is read one document at a time."""
SEPARATOR = re.compile(r"^<\|endof\w+\|>\n?", re.MULTILINE)


# --- documents ------------------------------------------------------------------------------------


def read_documents(paths: Iterable[Path]) -> list[str]:
    """Read the documents of some files, in the order given.

    A ``.jsonl`` file holds one document a line, the member ``text`` of a JSON object; a
    ``.parquet`` file one a row. Any other file is text, and lines like ``<|endofbook|>`` separate
    its documents. Each may be compressed (`unpacking.COMPRESSED`). A folder means every such file
    below it, sorted.

    Raises:
        CorpusError: a file is missing, empty or not UTF-8, a JSON line has no text, or a folder
            holds no such file.
    """
    documents = [document for path in corpus_files(paths) for document in _documents_of(path)]
    if not documents:
        raise CorpusError("no corpus was given; name at least one text file")
    return documents


def lines(documents: Iterable[str]) -> Iterator[str]:
    """Split documents into lines, line ends included."""
    for document in documents:
        yield from document.splitlines(keepends=True)


def _documents_of(path: Path) -> list[str]:
    if bare_suffix(path) != path.suffix.lower() or bare_suffix(path) == ".parquet":
        copy = plain(path)
        try:
            return _documents_of(copy)
        except CorpusError as error:
            raise CorpusError(str(error).replace(str(copy), str(path))) from error
    if path.suffix.lower() == ".jsonl":
        return [text for (text,) in read_members(path, ["text"])]
    documents = [document for document in SEPARATOR.split(read_text(path)) if document.strip()]
    if not documents:
        raise CorpusError(f"{path} is empty; it needs text, one paragraph a line")
    return documents


@dataclass(frozen=True)
class TokenStream:
    """All documents concatenated, each closed by the end token.

    ``ids`` (token) are the token ids and ``starts`` (paragraph) the indices in ``ids`` at which
    a paragraph begins.
    """

    ids: Int[Tensor, " token"]
    starts: Int[Tensor, " paragraph"]

    @classmethod
    def encode(cls, documents: Sequence[str], tokenizer: Tokenizer) -> TokenStream:
        """Tokenize documents."""
        ids: list[int] = []
        starts: list[int] = []
        for pieces in _paragraph_ids(documents, tokenizer):
            if len(pieces) > 1:  # a lone token is a blank line or the end
                starts.append(len(ids))
            ids.extend(pieces)
        return cls(torch.tensor(ids, dtype=torch.long), torch.tensor(starts, dtype=torch.long))

    def row_starts(self, length: int) -> Int[Tensor, " row"]:
        """Cut the stream into rows, at the beginning of a paragraph if one begins early enough.

        Each row starts at the last paragraph that the row before it still reaches, so that every
        token lies in a row and few lie in two.

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


# --- sentence pairs -------------------------------------------------------------------------------


class SentencePair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


def read_pairs(
    paths: Iterable[Path], *, source_field: str = "source", target_field: str = "target"
) -> list[SentencePair]:
    """Read the sentence pairs of some files, in the order given.

    - ``.tsv``: source, tab, target on every line. Quotes are text; blank lines are skipped.
    - ``.jsonl``: an object on every line, with the members `source_field` and `target_field`.
    - exactly two ``.txt`` files: line n of the second translates line n of the first.

    Args:
        paths: the files.
        source_field: the JSON member to translate from, ``"en"`` for instance.
        target_field: the JSON member to translate into.

    Raises:
        CorpusError: a file is missing, empty, not UTF-8 or of another kind, or a line is not a
            pair.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise CorpusError(
            "no sentence pairs were given; name a .tsv or .jsonl file, or two parallel .txt files"
        )
    if [file.suffix.lower() for file in files] == [".txt", ".txt"]:
        return _parallel_pairs(*files)
    fields = (source_field, target_field)
    return [pair for file in files for pair in _pairs_of(file, fields)]


def _pairs_of(path: Path, fields: tuple[str, str]) -> list[SentencePair]:
    _require_file(path)
    match path.suffix.lower():
        case ".tsv":
            return [
                _tabbed_pair(line, f"{path}, line {number}")
                for number, line in enumerate(read_lines(path), start=1)
                if line
            ]
        case ".jsonl":
            return [SentencePair(*members) for members in read_members(path, fields)]
        case ".txt":
            raise CorpusError(
                f"{path} holds one language; name exactly two .txt files, the source and the target"
            )
    raise CorpusError(f"{path} is not a file of pairs; name a .tsv, a .jsonl or two .txt files")


def _tabbed_pair(line: str, where: str) -> SentencePair:
    columns = line.split("\t")
    if len(columns) != 2:
        counted = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        raise CorpusError(f"{where} has {counted}; it needs exactly two, source and target")
    pair = SentencePair(*columns)
    for side, text in pair._asdict().items():
        if not text.strip():
            raise CorpusError(f"{where} has an empty {side}; fill it or remove the line")
    return pair


def _parallel_pairs(source: Path, target: Path) -> list[SentencePair]:
    for path in (source, target):
        _require_file(path)
    sides = [read_lines(path) for path in (source, target)]
    n_sources, n_targets = map(len, sides)
    if n_sources != n_targets:
        raise CorpusError(
            f"{source} has {n_sources} lines and {target} has {n_targets}; "
            "each line needs its translation on the same line of the other file"
        )
    for path, side in zip((source, target), sides, strict=True):
        for number, line in enumerate(side, start=1):
            if not line.strip():
                raise CorpusError(
                    f"{path}, line {number} is empty; fill it or remove that line from both files"
                )
    return [SentencePair(*pair) for pair in zip(*sides, strict=True)]


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise CorpusError(f"{path} is a folder; name the files of pairs in it")


# --- files ----------------------------------------------------------------------------------------


def corpus_files(paths: Iterable[Path]) -> list[Path]:
    """Replace each folder by the files below it of `KINDS`, compressed or not, sorted by path.

    Linked folders below a folder are not followed. Files keep their order and need not exist.

    Raises:
        CorpusError: a folder holds no such file, or cannot be listed.
    """
    return [
        file
        for path in map(Path, paths)
        for file in (_files_below(path) if path.is_dir() else [path])
    ]


def other_files(folder: Path) -> list[Path]:
    """Return the files below a folder that `corpus_files` leaves out, without hidden ones."""
    places = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    others = [path for path in places if bare_suffix(path) not in KINDS]
    return sorted(
        path
        for path in others
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _files_below(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise CorpusError(f"{error.filename} cannot be read: {error.strerror}") from error

    tree = os.walk(folder, onerror=fail)
    names = [Path(place, name) for place, _, names in tree for name in names]
    files = sorted(path for path in names if bare_suffix(path) in KINDS)
    if not files:
        raise CorpusError(
            f"{folder} holds no .txt file, nor .jsonl or .parquet; put text files into it or name "
            "them"
        )
    return files


def read_text(path: Path) -> str:
    """Read a file without its byte order mark and with LF at the ends of its lines.

    Raises:
        CorpusError: the file cannot be read, is binary, or is not UTF-8.
    """
    try:
        raw = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
    if b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        raise CorpusError(f"{path} is binary: line {line} holds a zero byte; name a text file")
    try:
        return raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CorpusError(
            f"{path} is not UTF-8: line {line} holds {raw[error.start]:#x}; convert it, such as by "
            "iconv -f latin1 -t utf-8"
        ) from error


def read_lines(path: Path) -> list[str]:
    """Read the lines of a file without their ends; only LF and CR LF end a line.

    Raises:
        CorpusError: as `read_text`, or the file holds nothing but white space.
    """
    text = read_text(path)
    if not text.strip():
        raise CorpusError(f"{path} is empty; it needs at least one line")
    return text.removesuffix("\n").split("\n")


def read_members(path: Path, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Read some members of the JSON object on each line of a file; blank lines are skipped.

    Args:
        path: a file of JSON lines.
        names: the members, each a string that is not blank.

    Returns:
        The members of every object, in the order of `names`.

    Raises:
        CorpusError: as `read_lines`, or a line is not such an object.
    """
    objects = (
        parse_line(line, names, f"{path}, line {number}")
        for number, line in enumerate(read_lines(path), start=1)
        if line.strip()
    )
    return [tuple(members[name] for name in names) for members in objects]


def parse_line(line: str, names: Sequence[str], where: str) -> dict[str, Any]:
    """Parse a JSON object in which some members are strings that are not blank.

    Args:
        line: the JSON.
        names: these members; their CR LF becomes LF. NaN and infinities become None.
        where: the file and the line, with which an error begins.

    Raises:
        CorpusError: the line is not such an object.
    """
    try:
        members = json.loads(line.rstrip(), parse_constant=_null, parse_float=_finite)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}"
        raise CorpusError(f"{where} is not JSON: {problem}; write one object a line") from error
    except (ValueError, RecursionError) as error:  # a number too long, or nesting too deep
        raise CorpusError(f"{where} cannot be decoded: {error}; write a simpler object") from error
    if not isinstance(members, dict):
        raise CorpusError(f"{where} is not a JSON object; write it as {_example(names)}")
    return members | {name: _member(members, name, names, where) for name in names}


def _null(_: str) -> None:
    """Read NaN and the infinities, which JSON does not have, as null."""


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


def _member(members: dict[str, Any], name: str, names: Sequence[str], where: str) -> str:
    if name not in members:
        raise CorpusError(f"{where} has no member {name!r}; write it as {_example(names)}")
    value = members[name]
    if not isinstance(value, str):
        raise CorpusError(f"{where}: the member {name!r} is not a string; write text in quotes")
    if not value.strip():
        raise CorpusError(f"{where}: the member {name!r} is empty; fill it or remove the line")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{where}: the member {name!r} holds a lone surrogate "
            f"(U+{ord(value[error.start]):04X}); write the whole character"
        ) from error
    return value.replace("\r\n", "\n")


def _example(names: Sequence[str]) -> str:
    return json.dumps(dict.fromkeys(names, "…"), ensure_ascii=False)
