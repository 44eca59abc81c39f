"""`headlight data`, options and work: clean a corpus before a model reads it, report on it.

Each writes a folder: ``kept.jsonl``, which `headlight train` reads, ``dropped.jsonl`` with a reason
in every line, and ``report.json``. A file appears under its name when it is complete.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headlight.commands.output import check, note, progress, say, writing
from headlight.commands.parsing import Commands, UsageError, option

if TYPE_CHECKING:
    from headlight.lab.data.deduplication import Deduplicator
    from headlight.lab.data.documents import Document, Unusable
    from headlight.lab.data.report import Cleaning

app = Commands(name="data", help="Clean a corpus before training, and report on what is in it.")

KEPT, DROPPED, REPORT = "kept.jsonl", "dropped.jsonl", "report.json"

Corpus = Annotated[
    list[Path],
    typer.Argument(
        help="Files of text, .jsonl with a member text, or .parquet; .gz, .bz2, .xz and .zst are "
        "unpacked; or folders of them.",
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
Threshold = Annotated[
    float, option("The Jaccard similarity from which a document is a near-duplicate.", "J")
]
LeastQuality = Annotated[
    float, option("Drop a document with a lower probability of being good.", "P", min=0, max=1)
]
Seed = Annotated[int, option("The seed of the random numbers.", "N", min=0, max=2**32 - 1)]
Force = Annotated[bool, option("Replace the files of an earlier run.", name="--force")]
Strict = Annotated[
    bool,
    option(
        "Stop at the first line or file that cannot be read; otherwise it is left out, counted, "
        "and written to dropped.jsonl with its reason.",
        name="--strict",
    ),
]


@app.command()
def report(
    corpus: Corpus,
    out: Out,
    by: Unit = "document",
    threshold: Threshold = 0.8,
    least_quality: LeastQuality = 0.5,
    card: Annotated[
        list[str] | None,
        option(
            "Write the figures to the card of this model, which was trained on the corpus; "
            "repeat it for more models.",
            "MODEL",
        ),
    ] = None,
    strict: Strict = False,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Clean a corpus and describe it: near-duplicates, quality, sizes before and after.

    What cannot be read is left out with its reason.
    """
    from headlight.lab.data.report import Cleaning
    from headlight.model.text_quality.classifier import read_classifier

    cards = [_card_of(model) for model in card or ()]
    cleaning = Cleaning(
        _deduplicator(threshold, seed), read_classifier(), least_quality=least_quality
    )
    with _folder(out, is_forced=force):
        figures = _clean(cleaning, _Source(corpus, by, strict), out)
        _write_report(out, figures)
    for path in cards:
        _write_card(path, figures)


# --- steps ----------------------------------------------------------------------------------------


def _deduplicator(threshold: float, seed: int) -> Deduplicator:
    from headlight.lab.data.deduplication import Deduplicator

    try:
        return Deduplicator(threshold, seed)
    except ValueError as error:
        raise UsageError(f"--{error}") from error


@dataclass(frozen=True)
class _Source:
    """A corpus: its files, how it is cut, and whether what cannot be read stops the command."""

    files: list[Path]
    by: Unit
    is_strict: bool

    def figures(self) -> dict[str, Any]:
        return {"corpus": [str(path) for path in self.files], "by": self.by}

    def documents(self, drop: Callable[[Unusable], None] | None = None) -> Iterator[Document]:
        """Read the documents; what cannot be read is given to `drop`, or left out."""
        from headlight.lab.data.documents import stop, stream_documents

        noted = stop if self.is_strict else drop or (lambda unusable: None)
        return stream_documents(self.files, self.by, noted)


def _clean(cleaning: Cleaning, source: _Source, out: Path) -> dict[str, Any]:
    """Write the documents that are kept and those that are dropped; return the figures."""
    from headlight.model.corpus import corpus_files

    n_bytes = sum(path.stat().st_size for path in corpus_files(source.files) if path.is_file())
    n_read = 0
    with (
        progress("reading") as tell,
        writing(out / KEPT, is_forced=True) as kept,
        writing(out / DROPPED, is_forced=True) as dropped,
    ):

        def drop(unusable: Unusable) -> None:
            cleaning.note_unusable(unusable)
            dropped.write(_line(unusable.to_dict()))

        for judged in cleaning.run(source.documents(drop)):
            file = kept if judged.reason is None else dropped
            file.write(_line(judged.to_dict()))
            n_read += judged.document.n_bytes
            tell(min(1.0, n_read / n_bytes))  # of a compressed file it is a guess
    return source.figures() | cleaning.to_dict()


# --- files ----------------------------------------------------------------------------------------


@contextmanager
def _folder(out: Path, *, is_forced: bool) -> Iterator[None]:
    """Make the folder, and check that its files can be written, before anything is computed.

    A folder that was made and is empty when the block fails is removed.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out is {out}, which is a file; name a folder")
    made = [path for path in (out, *out.parents) if not path.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        for name in (KEPT, DROPPED, REPORT):
            check(out / name, is_forced=is_forced)
        yield
    except BaseException:
        with suppress(OSError):  # it holds a file
            for path in made:
                path.rmdir()
        raise


def _line(members: dict[str, Any]) -> bytes:
    """Return a JSON line; a lone surrogate of another member becomes its escape."""
    line = json.dumps(members, ensure_ascii=False, allow_nan=False)
    return line.encode(errors="backslashreplace") + b"\n"


def _write_report(out: Path, figures: dict[str, Any]) -> None:
    text = json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with writing(out / REPORT, is_forced=True) as file:
        file.write(text.encode())
    if figures["before"]["documents"]:
        before, after = figures["before"]["documents"], figures["after"]["documents"]
        dropped = figures["dropped"]
        reasons = ", ".join(f"{n:,} {kind.replace('_', ' ')}" for kind, n in dropped.items())
        why = f" (dropped: {reasons})" if reasons else ""
        say(f"kept {after:,} of {before:,} documents{why}")
        if unusable := figures.get("unusable"):
            told = ", ".join(f"{n:,} {kind.replace('_', ' ')}" for kind, n in unusable.items())
            say(
                f"left out as unreadable: {told}; dropped.jsonl has the file, line and reason of "
                "each, and --strict stops at the first"
            )
        if not after and dropped.get("low_quality"):
            least = figures["quality"]["least_quality"]
            smaller = "" if figures["by"] == "passage" else ", or judge passages with --by passage"
            note(f"all that is left is below --least-quality {least:g}: lower it{smaller}")
    say(f"the report is {out / REPORT}")


def _card_of(model: str) -> Path:
    """Return the card of a model; reading it reports an error before the work begins."""
    from headlight.model.checkpoint.card import read_card
    from headlight.model.checkpoint.files import CARD as MODEL_CARD
    from headlight.model.checkpoint.loading import find_model

    path = find_model(model) / MODEL_CARD
    read_card(path)
    return path


def _write_card(path: Path, figures: dict[str, Any]) -> None:
    from headlight.lab.data.report import card_figures
    from headlight.model.checkpoint.card import read_card, write_card
    from headlight.model.checkpoint.loading import write_atomically

    command = shlex.join(["headlight", *sys.argv[1:]])
    changed = replace(read_card(path), corpus=card_figures(figures, command))
    write_atomically(path, lambda partial: write_card(partial, changed))
    say(f"the figures are on {path}")
