"""The data commands: clean a corpus before a model reads it, and report on it.

Each writes a folder: ``kept.jsonl``, which `headlight train` reads, ``dropped.jsonl`` with a reason
in every line, and ``report.json``. A file appears under its name when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from headlight.commands.options import Command, Group, UsageError, option, reporting_errors
from headlight.commands.output import check, notes, writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from headlight.model.data.documents import Document

data = typer.Typer(
    name="data",
    cls=Group,
    help="Clean a corpus: drop near-duplicates, and report on what is left.",
    no_args_is_help=True,
)

KEPT, DROPPED, REPORT = "kept.jsonl", "dropped.jsonl", "report.json"

Corpus = Annotated[
    list[Path],
    typer.Argument(
        help="Text files, .jsonl files with a member text, or folders of .txt files.",
        metavar="CORPUS...",
    ),
]
Out = Annotated[Path, option("The folder to write.", "DIR")]
Unit = Annotated[
    Literal["document", "passage"],
    option(
        "Judge whole documents, which lines such as <|endofbook|> separate, or passages of about "
        "2,000 characters.",
        name="--by",
    ),
]
Seed = Annotated[int, option("Decides everything random.", "N", min=0)]
Threads = Annotated[
    int | None, option("Threads; they do not change the result.", "N", "one per core", min=1)
]
Force = Annotated[bool, option("Replace the files of an earlier run.", name="--force")]


@data.command(cls=Command)
def dedup(
    corpus: Corpus,
    out: Out,
    by: Unit = "document",
    threshold: Annotated[
        float, option("The Jaccard similarity from which a document is a near-duplicate.", "J")
    ] = 0.8,
    seed: Seed = 0,
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Drop the near-duplicates of earlier documents.

    MinHash over character 5-grams with 128 permutations finds candidates; each is verified by its
    exact Jaccard similarity. Memory holds an index of the documents and no text.
    """
    with reporting_errors():
        from headlight.model.data.deduplication import Deduplicator
        from headlight.model.data.report import Cleaning

        try:
            deduplicator = Deduplicator(threshold, seed)
        except ValueError as error:
            raise UsageError(f"--threshold: {error}") from error
        cleaning = Cleaning(deduplicator, seed=seed, n_threads=threads or os.cpu_count() or 1)
        _clean(cleaning, corpus, by, out, is_forced=force)


def _clean(
    cleaning: Any, corpus: list[Path], by: Any, out: Path, *, is_forced: bool
) -> dict[str, Any]:
    """Write the documents that are kept and dropped, and the report."""
    from headlight.model.data.documents import size_of, stream_documents

    n_bytes = size_of(corpus)
    _make_folder(out, [KEPT, DROPPED, REPORT], is_forced=is_forced)
    with (
        writing(out / KEPT, is_forced=True) as kept,
        writing(out / DROPPED, is_forced=True) as dropped,
        _progress(n_bytes) as advance,
    ):
        for document, reason in cleaning.run(stream_documents(corpus, by)):
            if reason is None:
                _write_line(kept, document.to_dict())
            else:
                _write_line(dropped, document.to_dict() | {"reason": reason})
            advance(document)
    figures: dict[str, Any] = {
        "corpus": [str(path) for path in corpus],
        "by": by,
        **cleaning.to_dict(),
    }
    _write_report(out, figures)
    return figures


def _make_folder(out: Path, names: list[str], *, is_forced: bool) -> None:
    """Make the folder, and check that its files can be written, before anything is computed."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out is {out}, which is a file; name a folder")
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        check(out / name, is_forced=is_forced)


def _write_line(file: BinaryIO, line: dict[str, Any]) -> None:
    import orjson

    file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def _write_report(out: Path, figures: dict[str, Any]) -> None:
    import json

    with writing(out / REPORT, is_forced=True) as file:
        file.write(json.dumps(figures, indent=2, ensure_ascii=False).encode() + b"\n")


@contextmanager
def _progress(n_bytes: int) -> Iterator[Callable[[Document], None]]:
    """Show the bytes that were read on the terminal; call the result with each document."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task("", total=n_bytes)

        def advance(document: Document) -> None:
            progress.advance(task, document.place.end - document.place.start)

        yield advance
