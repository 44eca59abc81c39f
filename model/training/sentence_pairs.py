"""Sentences and their translations: what an encoder–decoder learns to translate from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from headlight.model.training.corpus_files import CorpusError, read_lines, read_members


class SentencePair(NamedTuple):
    """A text and its translation."""

    source: str
    target: str


def read_pairs(
    paths: Iterable[Path], *, source_field: str = "source", target_field: str = "target"
) -> list[SentencePair]:
    """The pairs of some files, in the order given, as they are in the files.

    What a file holds is told by its name:

    - ``.tsv``: source, tab, target on every line. Quotes are text; blank lines do not count.
    - ``.jsonl``: an object on every line, with the members `source_field` and `target_field`.
    - exactly two ``.txt`` files: line n of the second translates line n of the first.

    Args:
        paths: the files.
        source_field: the member of a JSON object to translate from, ``"en"`` for instance.
        target_field: the member to translate into.

    Raises:
        CorpusError: a file is missing, empty, not UTF-8, of another kind, or holds a line that is
            no pair; the message names the file and the line.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise CorpusError(
            "there are no pairs; name a .tsv or .jsonl file, or two .txt files line by line"
        )
    if [file.suffix.lower() for file in files] == [".txt", ".txt"]:
        return _parallel_pairs(*files)
    fields = (source_field, target_field)
    return [pair for file in files for pair in _read_file(file, fields)]


def _read_file(path: Path, fields: tuple[str, str]) -> list[SentencePair]:
    _refuse_folder(path)
    match path.suffix.lower():
        case ".tsv":
            return _tabbed_pairs(path)
        case ".jsonl":
            return [SentencePair(*members) for members in read_members(path, fields)]
        case ".txt":
            raise CorpusError(
                f"{path} holds one language; name exactly two .txt files, the source and the target"
            )
    raise CorpusError(f"{path} is no file of pairs; name a .tsv, a .jsonl or two .txt files")


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise CorpusError(f"{path} is a folder; name the files of pairs in it")


def _tabbed_pairs(path: Path) -> list[SentencePair]:
    return [
        _tabbed_pair(line, f"{path}, line {number}")
        for number, line in enumerate(read_lines(path), start=1)
        if line
    ]


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
    sides = [_parallel_lines(path) for path in (source, target)]
    n_sources, n_targets = map(len, sides)
    if n_sources != n_targets:
        raise CorpusError(
            f"{source} has {n_sources} lines and {target} has {n_targets}; "
            "each line needs its translation on the same line of the other file"
        )
    for path, lines in zip((source, target), sides, strict=True):
        _refuse_blank(path, lines)
    return [SentencePair(*pair) for pair in zip(*sides, strict=True)]


def _parallel_lines(path: Path) -> list[str]:
    _refuse_folder(path)
    return read_lines(path)


def _refuse_blank(path: Path, lines: list[str]) -> None:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise CorpusError(
                f"{path}, line {number} is empty; fill it or remove that line from both files"
            )
