"""A corpus cut into ranges of bytes, which workers read independently of each other.

Cutting needs only the sizes of the files. A range holds the lines that begin in it, so that each
line of a corpus belongs to exactly one range; of a Parquet file it is a row group. The files are
those of `headlight.model.corpus`, and Parquet with a column ``text``, or ``source`` and
``target`` for a translator.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from headlight.model.corpus import MAX_BYTES, SEPARATOR, CorpusError, corpus_files, parse_line
from headlight.model.profiles.measure import split_line

LEAST_RANGE, MOST_RANGE, N_RANGES = 2**16, 2**20, 64


@dataclass(frozen=True)
class Range:
    """A part of a file: bytes of text, or the row group ``start`` of a Parquet file."""

    number: int
    file: int
    path: str
    start: int
    end: int
    size: int
    changed: int

    def key(self, settings: str) -> str:
        """Return the name of the shard: its number and a hash of settings and range."""
        named = json.dumps([settings, Path(self.path).name, *list(asdict(self).values())[3:]])
        return f"{self.number:06d}-{sha256(named.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Sentence:
    """A sentence or a pair of the corpus, with its file and the byte or row of its line."""

    source: str
    target: str | None
    file: int
    offset: int


def plan(paths: Sequence[Path]) -> list[Range]:
    """Cut a corpus into ranges, in the order of the text.

    Their size depends only on that of the corpus, so the same corpus is always cut alike.

    Raises:
        CorpusError: there is no file, or one is missing or no Parquet file.
    """
    files = corpus_files(paths)
    if not files:
        raise CorpusError("no corpus was given; name at least one file")
    for path in files:
        if not path.is_file():
            raise CorpusError(f"{path} cannot be read: there is no such file")
    total = sum(path.stat().st_size for path in files)
    width = LEAST_RANGE
    while width < MOST_RANGE and width * N_RANGES < total:
        width *= 2
    ranges: list[Range] = []
    for number, path in enumerate(files):
        stat = path.stat()
        if not stat.st_size:
            raise CorpusError(f"{path} is empty; it needs text, one paragraph a line")
        facts = (stat.st_size, stat.st_mtime_ns)
        if path.suffix.lower() == ".parquet":
            cuts = [(group, group + 1) for group in range(_parquet(path).num_row_groups)]
        else:
            starts = range(0, stat.st_size, width)
            cuts = [(start, min(start + width, stat.st_size)) for start in starts]
        for start, end in cuts:
            ranges.append(Range(len(ranges), number, str(path.resolve()), start, end, *facts))
    return ranges


def sentences_in(part: Range, *, is_paired: bool) -> Iterator[Sentence]:
    """Read the sentences of a range; pairs for a translator.

    Raises:
        CorpusError: the file is damaged, changed meanwhile, or of another kind.
    """
    path = Path(part.path)
    try:
        stat = path.stat()
        if (stat.st_size, stat.st_mtime_ns) != (part.size, part.changed):
            raise CorpusError(f"{path} changed while it was read; build the atlas again")
        for offset, members in _rows(path, part, is_paired):
            if is_paired:
                yield Sentence(members[0], members[1], part.file, offset)
                continue
            for line in members[0].splitlines():
                for sentence in split_line(line):
                    yield Sentence(sentence, None, part.file, offset)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}") from error


def _rows(path: Path, part: Range, is_paired: bool) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the texts of each line or row, with its byte or number."""
    names = ["source", "target"] if is_paired else ["text"]
    kind = path.suffix.lower()
    if kind == ".parquet":
        yield from _parquet_rows(path, part, names)
        return
    for offset, line in _lines(path, part):
        if kind == ".jsonl":
            if line.strip():
                members = parse_line(line, names, f"{path}, the line at byte {offset:,}")
                yield offset, [members[name] for name in names]
        elif not is_paired:
            yield offset, [SEPARATOR.sub("", line)]
        elif kind != ".tsv":
            raise CorpusError(
                f"{path} is not a file of pairs; name a .tsv, .jsonl or .parquet file"
            )
        elif line.strip():
            columns = line.rstrip("\n").split("\t")
            if len(columns) != 2 or not all(column.strip() for column in columns):
                raise CorpusError(
                    f"{path}, the line at byte {offset:,} is not two texts with a tab between them"
                )
            yield offset, columns


def _lines(path: Path, part: Range) -> Iterator[tuple[int, str]]:
    """Yield the lines that begin in a range of bytes, each with its first byte."""
    with path.open("rb") as file:
        if part.start:
            file.seek(part.start - 1)
            _line_of(file, path)  # the end of a line that belongs to the range before
        while (offset := file.tell()) < part.end:
            raw = _line_of(file, path)
            if not raw:
                raise CorpusError(f"{path} changed while it was read; build the atlas again")
            raw = raw.removeprefix(codecs.BOM_UTF8) if offset == 0 else raw
            if b"\0" in raw:
                raise CorpusError(
                    f"{path} is binary: the line at byte {offset:,} holds a zero byte; name a text "
                    "file"
                )
            try:
                yield offset, raw.decode().replace("\r\n", "\n")
            except UnicodeDecodeError as error:
                at = offset + error.start
                raise CorpusError(
                    f"{path} is not UTF-8: byte {at:,} is {raw[error.start]:#x}"
                ) from error


def _line_of(file: Any, path: Path) -> bytes:
    raw: bytes = file.readline(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise CorpusError(f"{path} has a line longer than {MAX_BYTES >> 20} MB; break it")
    return raw


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise CorpusError(f"{path} is not a Parquet file: {error}") from error


def _parquet_rows(
    path: Path, part: Range, names: Iterable[str]
) -> Iterator[tuple[int, Sequence[str]]]:
    import pyarrow as pa

    file = _parquet(path)
    names = list(names)
    held = file.schema_arrow.names
    missing = [name for name in names if name not in held]
    if missing:
        raise CorpusError(f"{path} has no column '{missing[0]}'; it has {', '.join(held)}")
    first = sum(file.metadata.row_group(group).num_rows for group in range(part.start))
    try:
        for batch in file.iter_batches(1_000, row_groups=[part.start], columns=names):
            columns = [batch.column(name).to_pylist() for name in names]
            for row, values in enumerate(zip(*columns, strict=True), first):
                if not all(isinstance(value, str) and value.strip() for value in values):
                    raise CorpusError(f"{path}, row {row:,}: {' and '.join(names)} must be text")
                yield row, [value.replace("\r\n", "\n") for value in values]
            first += batch.num_rows
    except pa.ArrowException as error:
        raise CorpusError(f"{path} is damaged: {error}") from error
