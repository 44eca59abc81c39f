"""The documents of a corpus, one at a time: memory does not grow with the size of a file.

The files are those of training (`headlight.model.lab.training.corpus`): text whose documents are
separated by lines such as ``<|endofbook|>``, JSON lines with the member ``text``, and folders of
``.txt`` files. Training holds a corpus whole; a corpus that is still to be cleaned may be larger
than memory, so it is read line by line.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from headlight.model.lab.training.corpus import SEPARATOR, CorpusError, corpus_files, parse_line

Unit = Literal["document", "passage"]

MAX_BYTES = 2**24
"""The longest document and the longest line."""

PASSAGE = 2_000
"""Characters from which a passage is long enough."""

JSON_LINES = ".jsonl"
_MEGABYTES = f"{MAX_BYTES >> 20} MB"


class Place(NamedTuple):
    """The place of a document: its file, and its bytes there."""

    path: Path
    start: int
    end: int
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Document:
    """A text of a corpus.

    ``whole`` names the document that it is a passage of, or itself; ``members`` are the other
    members of its JSON line.
    """

    text: str
    place: Place
    whole: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        """The length of the text in UTF-8."""
        return len(self.text.encode())

    def to_dict(self) -> dict[str, Any]:
        """Return the document as an object for JSON lines; ``source`` is its file and line."""
        return {**self.members, "text": self.text, "source": str(self.place)}


def stream_documents(paths: Iterable[Path], unit: Unit = "document") -> Iterator[Document]:
    """Read the documents of some files in the order given, holding one at a time.

    Args:
        paths: text files, ``.jsonl`` files, or folders of ``.txt`` files.
        unit: ``"document"``, or ``"passage"`` to cut text files into whole paragraphs of together
            at least `PASSAGE` characters. A JSON line is a document either way.

    Raises:
        CorpusError: a file is missing, empty, binary or not UTF-8, a line is not JSON with a
            text, or a document is longer than `MAX_BYTES`.
    """
    for path in corpus_files(paths):
        is_empty = True
        is_json = path.suffix.lower() == JSON_LINES
        for document in _of_json_lines(path) if is_json else _of_text(path, unit):
            is_empty = False
            yield document
        if is_empty:
            raise CorpusError(f"{path} is empty; it needs text, one paragraph a line")


def size_of(paths: Iterable[Path]) -> int:
    """Return the bytes of all files together.

    Raises:
        CorpusError: there is no file, or one is missing.
    """
    files = corpus_files(paths)
    if not files:
        raise CorpusError("no corpus was given; name at least one text file")
    for path in files:
        if not path.is_file():
            reason = "No such file or directory" if not path.exists() else "not a regular file"
            raise CorpusError(f"{path} cannot be read: {reason}")
    return sum(path.stat().st_size for path in files)


def read_at(place: Place) -> str:
    """Read the text of a document again.

    Raises:
        CorpusError: the file cannot be read, or changed meanwhile.
    """
    try:
        with place.path.open("rb") as file:
            file.seek(place.start)
            raw = file.read(place.end - place.start)
        text = raw.decode().replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{place.path} changed while it was read") from error
    if place.path.suffix.lower() == JSON_LINES:
        return str(parse_line(text, ["text"], f"{place.path}, line {place.line}")["text"])
    return text.strip("\n")


class _Line(NamedTuple):
    text: str
    start: int
    end: int
    number: int


def _lines(path: Path) -> Iterator[_Line]:
    """Yield the lines of a file with their ends, CR LF as LF, and their bytes in the file."""
    try:
        with path.open("rb") as file:
            start, number = 0, 0
            while raw := file.readline(MAX_BYTES + 1):
                number += 1
                end = start + len(raw)
                if number == 1 and raw.startswith(codecs.BOM_UTF8):
                    start += len(codecs.BOM_UTF8)
                    raw = raw.removeprefix(codecs.BOM_UTF8)
                yield _Line(_decoded(raw, path, number), start, end, number)
                start = end
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error


def _decoded(raw: bytes, path: Path, number: int) -> str:
    if b"\0" in raw:
        raise CorpusError(f"{path} is binary: line {number} holds a zero byte; name a text file")
    if len(raw) > MAX_BYTES:
        raise CorpusError(f"{path}, line {number} is longer than {_MEGABYTES}; break the line")
    try:
        return raw.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not UTF-8: line {number} holds {raw[error.start]:#x}"
        ) from error


def _of_json_lines(path: Path) -> Iterator[Document]:
    for line in _lines(path):
        if line.text.strip():
            members = parse_line(line.text, ["text"], f"{path}, line {line.number}")
            text = members.pop("text")
            place = Place(path, line.start, line.end, line.number)
            yield Document(text, place, str(place), members)


def _of_text(path: Path, unit: Unit) -> Iterator[Document]:
    held: list[_Line] = []
    n_characters, begins = 0, 1
    for line in _lines(path):
        text, start, end, number = line
        if separator := SEPARATOR.match(text):
            yield from _joined(path, held, begins)
            held, n_characters, begins = [], 0, number
            start += len(separator[0].encode())
            text = text[separator.end() :]
        if not text or not (held or text.strip()):
            continue
        held.append(_Line(text, start, end, number))
        n_characters += len(text)
        if unit == "passage" and n_characters >= PASSAGE:
            yield from _joined(path, held, begins)
            held, n_characters = [], 0
        elif end - held[0].start > MAX_BYTES:
            raise CorpusError(
                f"{path}, line {held[0].number} begins a document of more than {_MEGABYTES}; put a "
                "line <|endofdocument|> between documents, or cut the text with --by passage"
            )
    yield from _joined(path, held, begins)


def _joined(path: Path, lines: list[_Line], begins: int) -> Iterator[Document]:
    """Yield the document that some lines make; none if all are blank.

    `begins` is the line at which the document begins that they are a passage of.
    """
    while lines and not lines[-1].text.strip():
        lines.pop()
    if lines:
        text = "".join(line.text for line in lines).strip("\n")
        place = Place(path, lines[0].start, lines[-1].end, lines[0].number)
        yield Document(text, place, f"{path}:{begins}")
