"""The documents of a corpus, one at a time: memory does not grow with the size of a file.

The files are those of training (`headlight.model.corpus`): text whose documents are
separated by lines such as ``<|endofbook|>``, JSON lines with the member ``text``, Parquet files,
compressed ones (`unpacking`), and folders of them. Training holds a corpus whole; a corpus that is
still to be cleaned may be larger than memory, so it is read line by line.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from headlight.model.corpus import (
    MAX_BYTES,
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

JSON_LINES = (".jsonl", PARQUET)
_BEGINNING = 2**16  # bytes in which a zero byte makes a file binary before any of it is read
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


class Unusable(NamedTuple):
    """Something of a corpus that cannot be read: its file, its line, 0 for the whole file, and why.

    ``kind`` is one of `UNUSABLE`.
    """

    path: Path
    line: int
    kind: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as an object for JSON lines."""
        source = f"{self.path}:{self.line}" if self.line else str(self.path)
        return {"source": source, "reason": {"kind": self.kind, "message": self.message}}


UNUSABLE = (
    "broken_line",
    "empty_text",
    "wrong_encoding",
    "binary",
    "too_long",
    "empty_file",
    "unreadable_file",
    "other_ending",
)

Dropper = Callable[[Unusable], None]


def stop(unusable: Unusable) -> None:
    """Raise a CorpusError for the first thing that cannot be read."""
    raise CorpusError(unusable.message)


def stream_documents(
    paths: Iterable[Path], unit: Unit = "document", drop: Dropper = stop
) -> Iterator[Document]:
    """Read the documents of some files in the order given, holding one at a time.

    Args:
        paths: text files, ``.jsonl`` and ``.parquet`` files, compressed ones, or folders of them.
        unit: ``"document"``, or ``"passage"`` to cut text files into whole paragraphs of together
            at least `PASSAGE` characters. A JSON line is a document either way.
        drop: called with each file or line that is left out: a file that is missing, empty or
            binary, one of a folder with another ending, a line that is not UTF-8, too long, or not
            JSON with a text, a document longer than `MAX_BYTES`. `stop` raises a CorpusError
            instead.

    Raises:
        CorpusError: a folder holds no file to read, nothing of the corpus can be read, or `stop`
            was given.
    """
    first: list[Unusable] = []
    n_documents = n_unusable = 0

    def note(unusable: Unusable) -> None:
        nonlocal n_unusable
        n_unusable += 1
        if not first:
            first.append(unusable)
        drop(unusable)

    paths = [Path(path) for path in paths]
    files = corpus_files(paths)
    for path in (other for folder in paths if folder.is_dir() for other in other_files(folder)):
        message = f"{path} is no text, .jsonl or .parquet; name it to read it as text"
        drop(Unusable(path, 0, "other_ending", message))
    for path in files:
        before = n_documents + n_unusable
        try:
            is_json = bare_suffix(path) in JSON_LINES
            for document in _of_json_lines(path, note) if is_json else _of_text(path, unit, note):
                n_documents += 1
                yield document
        except _WholeFile as error:
            note(Unusable(path, 0, error.kind, str(error)))
        if n_documents + n_unusable == before:
            message = f"{path} is empty; it needs text, one paragraph a line"
            note(Unusable(path, 0, "empty_file", message))
    if first and not n_documents:
        stop(first[0])


class _WholeFile(CorpusError):
    """No more of a file can be read."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def size_of(paths: Iterable[Path]) -> int:
    """Return the bytes of all files together, unpacked; one that cannot be unpacked counts 0.

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
    return sum(map(_n_bytes, files))


def _n_bytes(path: Path) -> int:
    try:
        return plain(path).stat().st_size
    except CorpusError:  # reported when it is read
        return 0


def read_at(place: Place) -> str:
    """Read the text of a document again.

    Raises:
        CorpusError: the file cannot be read, or changed meanwhile.
    """
    try:
        with plain(place.path).open("rb") as file:
            file.seek(place.start)
            raw = file.read(place.end - place.start)
        if bare_suffix(place.path) in JSON_LINES:
            where = f"{place.path}, line {place.line}"
            return str(parse_line(raw.decode(), ["text"], where)["text"])
        lines = [line for line in raw.splitlines(keepends=True) if _problem(line) is None]
        return b"".join(lines).decode().replace("\r\n", "\n").strip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{place.path} changed while it was read") from error


class _Line(NamedTuple):
    text: str
    start: int
    end: int
    number: int


def _lines(path: Path, drop: Dropper) -> Iterator[_Line]:
    """Yield the lines of a file with their ends, CR LF as LF, and their bytes in the file."""
    try:
        copy = plain(path)
    except CorpusError as error:
        raise _WholeFile("unreadable_file", str(error)) from error
    try:
        with copy.open("rb") as file:
            if (place := file.read(_BEGINNING).find(b"\0")) >= 0:
                file.seek(0)
                raise _WholeFile("binary", _binary(path, file.read(place).count(b"\n") + 1))
            file.seek(0)
            start, number = 0, 0
            while raw := file.readline(MAX_BYTES + 1):
                number += 1
                end = start + len(raw)
                is_whole = len(raw) <= MAX_BYTES
                while not is_whole and not raw.endswith(b"\n") and (rest := file.readline(2**20)):
                    end += len(rest)
                    raw = rest
                if number == 1 and raw.startswith(codecs.BOM_UTF8):
                    start += len(codecs.BOM_UTF8)
                    raw = raw.removeprefix(codecs.BOM_UTF8)
                if not is_whole:
                    message = f"{path}, line {number} is longer than {_MEGABYTES}; break the line"
                    drop(Unusable(path, number, "too_long", message))
                elif (problem := _problem(raw)) is None:
                    yield _Line(raw.decode().replace("\r\n", "\n"), start, end, number)
                elif problem == "binary":
                    raise _WholeFile("binary", _binary(path, number))
                else:
                    message = f"{path} is not UTF-8: line {number} holds {problem}"
                    drop(Unusable(path, number, "wrong_encoding", message))
                start = end
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise _WholeFile("unreadable_file", message) from error


def _binary(path: Path, line: int) -> str:
    return f"{path} is binary: line {line} holds a zero byte; name a text file"


def _problem(raw: bytes) -> str | None:
    """Return the first byte of a line that is not UTF-8, "binary" for a zero byte, else None."""
    if b"\0" in raw:
        return "binary"
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"{raw[error.start]:#x}"
    return None


def _of_json_lines(path: Path, drop: Dropper) -> Iterator[Document]:
    for line in _lines(path, drop):
        if line.text.strip():
            try:
                members = parse_line(line.text, ["text"], f"{path}, line {line.number}")
            except CorpusError as error:
                kind = "empty_text" if "is empty" in str(error) else "broken_line"
                drop(Unusable(path, line.number, kind, str(error)))
                continue
            text = members.pop("text")
            place = Place(path, line.start, line.end, line.number)
            yield Document(text, place, str(place), members)


def _of_text(path: Path, unit: Unit, drop: Dropper) -> Iterator[Document]:
    held: list[_Line] = []
    n_characters, begins, is_skipped = 0, 1, False
    for line in _lines(path, drop):
        text, start, end, number = line
        if separator := SEPARATOR.match(text):
            yield from _joined(path, held, begins)
            held, n_characters, begins, is_skipped = [], 0, number, False
            start += len(separator[0].encode())
            text = text[separator.end() :]
        if is_skipped or not text or not (held or text.strip()):
            continue
        held.append(_Line(text, start, end, number))
        n_characters += len(text)
        if unit == "passage" and n_characters >= PASSAGE:
            yield from _joined(path, held, begins)
            held, n_characters = [], 0
        elif end - held[0].start > MAX_BYTES:
            message = (
                f"{path}, line {held[0].number} begins a document of more than {_MEGABYTES}; put a "
                "line <|endofdocument|> between documents, or cut the text with --by passage"
            )
            drop(Unusable(path, held[0].number, "too_long", message))
            held, n_characters, is_skipped = [], 0, True
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
