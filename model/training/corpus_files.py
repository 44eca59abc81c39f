"""The files of a corpus: text, lines and JSON objects, refused by file and line where broken.

Every file is UTF-8. A byte order mark is dropped and a line may end in CR LF, which becomes LF;
nothing else is changed, so the Unicode form of the text (NFC or not) is the file's own.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


class CorpusError(ValueError):
    """A corpus that cannot be used; the message names the file and what is wrong."""


def corpus_files(paths: Iterable[Path]) -> list[Path]:
    """The files that some paths stand for, in the order given.

    A folder stands for every ``.txt`` file below it, sorted by path; linked folders inside it are
    not followed. Anything else stands for itself, whether it is there or not.

    Raises:
        CorpusError: a folder holds no ``.txt`` file, or cannot be listed.
    """
    return [
        file
        for path in map(Path, paths)
        for file in (_text_files_below(path) if path.is_dir() else [path])
    ]


def _text_files_below(folder: Path) -> list[Path]:
    try:
        tree = list(os.walk(folder, onerror=_raise))
    except OSError as error:
        raise CorpusError(f"{error.filename} cannot be read: {error.strerror}") from error
    names = [Path(place, name) for place, _, names in tree for name in names]
    files = sorted(path for path in names if path.suffix.lower() == ".txt")
    if not files:
        raise CorpusError(f"{folder} holds no .txt file; put text files into it or name them")
    return files


def _raise(error: OSError) -> None:
    raise error


def read_text(path: Path) -> str:
    """The text of a file, without a byte order mark and with LF at the ends of its lines.

    Raises:
        CorpusError: the file cannot be read, or is not UTF-8 (with the line where it breaks).
    """
    try:
        raw = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CorpusError(
            f"{path} is not UTF-8: line {line} holds {raw[error.start]:#x}"
        ) from error


def read_lines(path: Path) -> list[str]:
    """The lines of a file without their ends; only LF and CR LF end a line.

    Raises:
        CorpusError: as `read_text`, or the file holds nothing but white space.
    """
    text = read_text(path)
    if not text.strip():
        raise CorpusError(f"{path} is empty; it needs at least one line")
    return text.removesuffix("\n").split("\n")


def read_members(path: Path, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Some members of the JSON object on each line of a file; blank lines do not count.

    Args:
        path: a file of JSON lines.
        names: which members, each a string that is not blank.

    Returns:
        The members of every object, in the order of `names`.

    Raises:
        CorpusError: as `read_lines`, or a line is no such object; the message names the line.
    """
    return [
        _members(line, names, f"{path}, line {number}")
        for number, line in enumerate(read_lines(path), start=1)
        if line.strip()
    ]


def _members(line: str, names: Sequence[str], where: str) -> tuple[str, ...]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}"
        raise CorpusError(f"{where} is not JSON: {problem}; write one object a line") from error
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond all measure
        raise CorpusError(f"{where} cannot be decoded: {error}; write a simpler object") from error
    if not isinstance(found, dict):
        raise CorpusError(f"{where} is no JSON object; write it as {_example(names)}")
    return tuple(_member(found, name, names, where) for name in names)


def _member(found: dict[str, Any], name: str, names: Sequence[str], where: str) -> str:
    if name not in found:
        raise CorpusError(f"{where} has no member {name!r}; write it as {_example(names)}")
    value = found[name]
    if not isinstance(value, str):
        raise CorpusError(f"{where}: the member {name!r} is no string; write text in quotes")
    if not value.strip():
        raise CorpusError(f"{where}: the member {name!r} is empty; fill it or remove the line")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{where}: the member {name!r} holds a lone surrogate "
            f"(U+{ord(value[error.start]):04X}), which is no text; write the whole character"
        ) from error
    return value.replace("\r\n", "\n")


def _example(names: Sequence[str]) -> str:
    return json.dumps(dict.fromkeys(names, "…"), ensure_ascii=False)
