"""The chapters that a server or a command has: the shipped ones, and those of a folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, ClassVar

from headlight.chapters.chapter import MAX_BYTES, NAME, Chapter, ChapterError, read_chapter
from headlight.model.checkpoint.loading import way_to_the_zoo

SHIPPED = Path(__file__).with_name("shipped")
MAX_CHAPTERS = 500


def read_file(path: Path) -> Chapter:
    """Read the chapter of a file, whose name without `.md` is the chapter's id.

    Raises:
        ChapterError: the file breaks a rule.
        OSError: it cannot be read.
    """
    if not NAME.fullmatch(path.stem):
        raise ChapterError(path.name, 1, "a file's name has small letters, digits, - and _ only")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.stat().st_size > MAX_BYTES:
        message = f"the file is larger than the {MAX_BYTES:,} bytes of a chapter"
        raise ChapterError(path.name, 1, message)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ChapterError(path.name, 1, "the file is not UTF-8 text") from error
    return read_chapter(text, path.name, path.stem)


class Library:
    """Finds chapters; a file is read once in a process, and again if it has changed.

    Args:
        folder: of more chapters than those that ship; None: there is none.
    """

    _known: ClassVar[dict[tuple[Path, int, int], Chapter | ChapterError]] = {}

    def __init__(self, folder: Path | None = None) -> None:
        self.folders = [SHIPPED, *([folder] if folder else [])]

    def chapters(self) -> tuple[list[Chapter], dict[str, str]]:
        """Return the chapters in their order, and by file name why one cannot be read."""
        chapters: dict[str, Chapter] = {}
        faults: dict[str, str] = {}
        for path in self._paths():
            read = self._read(path)
            if isinstance(read, ChapterError):
                faults[path.name] = str(read)
            elif read.id in chapters:
                faults[path.name] = f"{path.name}: there is another chapter of this name"
            else:
                chapters[read.id] = read
        ordered = sorted(chapters.values(), key=lambda chapter: (chapter.order, chapter.id))
        return ordered, faults

    def _paths(self) -> Iterator[Path]:
        for folder in self.folders:
            if folder.is_dir():
                yield from sorted(folder.glob("*.md"))[:MAX_CHAPTERS]

    def _read(self, path: Path) -> Chapter | ChapterError:
        try:
            facts = path.stat()
        except OSError as error:
            return ChapterError(path.name, 1, f"the file cannot be read: {error.strerror}")
        key = (path, facts.st_mtime_ns, facts.st_size)
        if key not in self._known:
            try:
                self._known[key] = read_file(path)
            except ChapterError as error:
                self._known[key] = error
            except OSError as error:
                return ChapterError(path.name, 1, f"the file cannot be read: {error.strerror}")
        return self._known[key]


def without_the_zoo(
    chapters: list[Chapter], here: Collection[str]
) -> tuple[list[Chapter], dict[str, str]]:
    """Return the chapters of models that are here, and by file name what the others need."""
    apart: dict[str, str] = {}
    if more := way_to_the_zoo():
        for chapter in chapters:
            models = {step.opens.model for step in chapter.steps if step.opens.model}
            if lacking := sorted(models.difference(here)):
                name = f"{chapter.id}.md"
                apart[name] = f"{name}: needs {', '.join(lacking)}{more}"
    return [each for each in chapters if f"{each.id}.md" not in apart], apart


def circle_in(chapters: list[Chapter], start: Chapter) -> list[str] | None:
    """Return the ids of a circle that `next` leads into from a chapter; None: it ends."""
    by_id = {chapter.id: chapter for chapter in chapters} | {start.id: start}
    path: list[str] = []
    here: str | None = start.id
    while here is not None and here in by_id:
        if here in path:
            return [*path[path.index(here) :], here]
        path.append(here)
        here = by_id[here].next
    return None


def summary_of(chapter: Chapter) -> dict[str, Any]:
    """Return a chapter in short, as the list of chapters has it."""
    return {
        **chapter.model_dump(include={"id", "title", "about"}),
        "n_steps": len(chapter.steps),
        "n_questions": chapter.n_questions,
        "is_for_any": chapter.finds is not None,
    }
