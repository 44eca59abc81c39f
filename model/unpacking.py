"""Files of a corpus as plain text: unpacked, Parquet as JSON lines, UTF-16 as UTF-8.

Each is copied once to a temporary file, which lasts as long as the process, and is read from there;
a document so keeps a place in bytes to which its reader can go back.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import math
import shutil
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import zstandard

PARQUET = ".parquet"
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda file: _Zstandard(file),
}
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_NUMBERS = count()
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, UnicodeError)

assert set(_OPENERS) == set(COMPRESSED)


class CorpusError(ValueError):
    """An unusable corpus; the message names the file and the fault."""


def bare_suffix(path: Path) -> str:
    """Return the ending of a file's name in lower case, without that of a compression."""
    *_, before, last = ["", "", *(suffix.lower() for suffix in path.suffixes)]
    return before if last in COMPRESSED else last


class _Zstandard:
    """The content of a Zstandard file; zstandard's own reader is silent if the file ends early."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._packed = b""

    def read(self, n_bytes: int) -> bytes:
        """Read some bytes, at least one before the end.

        Raises:
            EOFError: the file ends within a frame.
        """
        while packed := self._packed or self._file.read(n_bytes):
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            content = self._frame.decompress(packed)
            self._packed = self._frame.unused_data if self._frame.eof else b""
            if content:
                return content
        if not self._frame.eof:
            raise EOFError("it ends early")
        return b""

    def close(self) -> None:
        """Do nothing; the file is its owner's to close."""


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="headlight-corpus-")


def plain(path: Path) -> Path:
    """Return a file as UTF-8 text or JSON lines: the file itself, or its unpacked copy.

    Raises:
        CorpusError: it cannot be read or unpacked, or a library for it is missing.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
    return _plain(path, status.st_mtime_ns, status.st_size)


@cache
def _plain(path: Path, _changed: int, n_bytes: int) -> Path:
    try:
        encoding = _utf_16_of(path)
        if not (path.suffix.lower() in _OPENERS or bare_suffix(path) == PARQUET or encoding):
            return path
        copy = Path(_folder().name, f"{next(_NUMBERS)}{bare_suffix(path)}")
        if opener := _OPENERS.get(path.suffix.lower()):
            with path.open("rb") as file, closing(opener(file)) as packed, copy.open("wb") as text:
                shutil.copyfileobj(packed, text)
            encoding = _utf_16_of(copy)
        elif n_bytes:
            shutil.copyfile(path, copy)
        if bare_suffix(path) == PARQUET:
            return _as_json_lines(copy, path)
        if encoding:
            copy.write_text(copy.read_bytes()[2:].decode(encoding), "utf-8", newline="")
    except _DAMAGED as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise CorpusError(f"{path} cannot be unpacked: {why}") from error
    return copy


def _utf_16_of(path: Path) -> str | None:
    """Return the encoding that a byte order mark of UTF-16 names; None without one."""
    if bare_suffix(path) == PARQUET:
        return None
    with path.open("rb") as file:
        return _UTF_16.get(file.read(2))


def _as_json_lines(parquet: Path, path: Path) -> Path:
    """Write a Parquet file as JSON lines, a row a line."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise CorpusError(
            f"{path} is a Parquet file, which needs pyarrow: pip install pyarrow"
        ) from error
    lines = parquet.with_suffix(".jsonl")
    try:
        with ParquetFile(parquet) as table, lines.open("w", encoding="utf-8") as file:
            for batch in table.iter_batches():
                for row in batch.to_pylist():
                    line = json.dumps(_finite(row), ensure_ascii=False, default=str)
                    file.write(line.encode(errors="backslashreplace").decode() + "\n")
    except (ArrowException, OSError) as error:
        raise CorpusError(f"{path} is no readable Parquet file: {error}") from error
    return lines


def _finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _finite(member) for name, member in value.items()}
    return [_finite(member) for member in value] if isinstance(value, list) else value
