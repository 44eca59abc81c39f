"""The documents of a corpus, with the file and the line of each.

The files are those of training (`headlight.model.corpus`). What cannot be read is left out with its
reason, a line of a text or of JSON lines at a time.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

from headlight.model.corpus import (
    SEPARATOR,
    CorpusError,
    bare_suffix,
    corpus_files,
    other_files,
    parse_line,
)
from headlight.model.unpacking import PARQUET, plain

Unit = Literal["document", "passage"]

PASSAGE = 2_000
"""Characters from which a passage is long enough."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text of a corpus; ``source`` is its file and line, ``members`` the rest of a JSON line."""

    text: str
    source: str
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        """The length of the text in UTF-8."""
        return len(self.text.encode())

    def to_dict(self) -> dict[str, Any]:
        """Return the document as an object for JSON lines."""
        return {**self.members, "text": self.text, "source": self.source}


class Unusable(NamedTuple):
    """Something of a corpus that cannot be read: its file, its line, 0 for the whole file, and why.

    Kinds: broken_line, wrong_encoding, binary, unreadable_file, empty_file and other_ending.
    """

    path: Path
    line: int
    kind: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as an object for JSON lines."""
        source = f"{self.path}:{self.line}" if self.line else str(self.path)
        return {"source": source, "reason": {"kind": self.kind, "message": self.message}}


Dropper = Callable[[Unusable], None]
Lines = Iterable[tuple[int, str]]


def stop(unusable: Unusable) -> None:
    """Raise a CorpusError for the first thing that cannot be read."""
    raise CorpusError(unusable.message)


def stream_documents(
    paths: Iterable[Path], unit: Unit = "document", drop: Dropper = stop
) -> Iterator[Document]:
    """Read the documents of some files in the order given, a file at a time.

    Args:
        paths: text files, ``.jsonl`` and ``.parquet`` files, compressed ones, or folders of them.
        unit: ``"document"``, or ``"passage"`` to cut text files into whole paragraphs of together
            at least `PASSAGE` characters. A JSON line is a document either way.
        drop: called with each file or line that is left out: a file that is missing, empty or
            binary, one of a folder with another ending, a line that is not UTF-8, or not JSON with
            a text. `stop` raises a CorpusError instead.

    Raises:
        CorpusError: nothing of the corpus can be read, or `stop` was given.
    """
    noted: list[Unusable] = []

    def note(unusable: Unusable) -> None:
        noted.append(unusable)
        drop(unusable)

    paths = [Path(path) for path in paths]
    files = corpus_files(paths)
    if not files:
        raise CorpusError("no corpus was given; name at least one text file")
    for path in (other for folder in paths if folder.is_dir() for other in other_files(folder)):
        message = f"{path} is no text, .jsonl or .parquet; name it to read it as text"
        drop(Unusable(path, 0, "other_ending", message))
    has_document = False
    for path in files:
        n_noted, is_empty = len(noted), True
        lines = _lines(path, note)
        is_json = bare_suffix(path) in (".jsonl", PARQUET)
        for document in (
            _of_json_lines(path, lines, note) if is_json else _of_text(path, lines, unit)
        ):
            has_document, is_empty = True, False
            yield document
        if is_empty and len(noted) == n_noted:
            message = f"{path} is empty; it needs text, one paragraph a line"
            note(Unusable(path, 0, "empty_file", message))
    if noted and not has_document:
        stop(noted[0])


def _lines(path: Path, drop: Dropper) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line of a file, with LF at its end."""
    try:
        raw = plain(path).read_bytes().removeprefix(codecs.BOM_UTF8)
    except (CorpusError, OSError) as error:
        why = getattr(error, "strerror", None)
        message = f"{path} cannot be read: {why}" if why else str(error)
        drop(Unusable(path, 0, "unreadable_file", message))
        return
    if (place := raw.find(b"\0")) >= 0:
        at = raw.count(b"\n", 0, place) + 1
        message = f"{path} is binary: line {at} holds a zero byte; name a text file"
        drop(Unusable(path, 0, "binary", message))
        return
    for number, line in enumerate(BytesIO(raw), start=1):
        try:
            yield number, line.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            message = f"{path} is not UTF-8: line {number} holds {line[error.start]:#x}"
            drop(Unusable(path, number, "wrong_encoding", message))


def _of_json_lines(path: Path, lines: Lines, drop: Dropper) -> Iterator[Document]:
    for number, line in lines:
        if line.strip():
            try:
                members = parse_line(line, ["text"], f"{path}, line {number}")
            except CorpusError as error:
                drop(Unusable(path, number, "broken_line", str(error)))
                continue
            yield Document(members.pop("text"), f"{path}:{number}", members)


def _of_text(path: Path, lines: Lines, unit: Unit) -> Iterator[Document]:
    held: list[str] = []
    begins = n_characters = 0

    def joined() -> Iterator[Document]:
        if text := "".join(held).strip("\n"):
            yield Document(text, f"{path}:{begins}")

    for number, line in lines:
        separator = SEPARATOR.match(line)
        if separator or (unit == "passage" and n_characters >= PASSAGE):
            yield from joined()
            held, n_characters = [], 0
        text = line[separator.end() :] if separator else line
        if held or text.strip():
            begins = begins if held else number
            held.append(text)
            n_characters += len(text)
    yield from joined()
