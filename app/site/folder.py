"""Write a site: its pages, their code, and every answer, as files that any host can serve.

All files but the pages are named by their content, and nothing in them tells of a time or a
machine, so that two sites of the same models differ in no byte. A site is written next to its place
and then renamed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import mkdtemp

import orjson
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from headlight import saved_page
from headlight.chapters.chapter import Chapter
from headlight.chapters.library import Library, read_file, summary_of, without_the_zoo
from headlight.joined_scripts import DYNAMIC, SCRIPTS
from headlight.model.experiments.experiment_registry import EXPERIMENTS
from headlight.models.model_registry import registry_of
from headlight.serving.experiments import experiment_tabs
from headlight.settings import HOME, Settings
from headlight.site.answers import Answers, Members, Reading
from headlight.site.documents import documents
from headlight.site.live import live_index

MARK = "headlight-site.json"
"""The file by which a folder is known to be a site, which another one may replace."""

EXPORT = 20
"""The texts that are answered in the time of an export."""

_EXPERIMENTS = tuple(
    f"views/experiments/{path.name}"
    for path in sorted((SCRIPTS / "views/experiments").glob("*.js"))
)


class SiteError(ValueError):
    """A site cannot be written; the message gives the reason and the way out."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The contents of a site.

    Args:
        chapters: files and folders of more chapters than those that ship.
        texts: more texts than the examples.
        live: the models that the pages compute themselves.
        server: the address of a server that computes; empty: none is named.
    """

    chapters: Sequence[Path] = ()
    texts: Sequence[Reading] = ()
    live: Sequence[str] = ()
    server: str = ""


@dataclass
class Folder:
    """The files of a site while it is written."""

    root: Path
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.root / "data").mkdir(parents=True)

    def keep(self, kind: str, content: bytes) -> str:
        """Write content as a script that hands it over, and return the file's name."""
        packed = base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode()
        name = f"{kind}-{hashlib.sha256(content).hexdigest()[:12]}"
        self.write(f"data/{name}.js", f'(self.headlightFiles ??= {{}})["{name}"] = "{packed}";\n')
        return name

    def keep_live(self, name: str, content: bytes) -> str:
        """Write a file that computes a model, and return its name, which tells its content."""
        kind, _, ending = name.rpartition(".")
        name = f"live/{kind}-{hashlib.sha256(content).hexdigest()[:12]}.{ending}"
        (self.root / "live").mkdir(exist_ok=True)
        (self.root / name).write_bytes(content)
        self.names.append(name)
        return name

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.root / name).write_text(text, encoding="utf-8")
        self.names.append(name)


def write_site(
    out: Path,
    plan: Plan,
    settings: Settings,
    on_progress: Callable[[float], object] = lambda _: None,
    on_note: Callable[[str], object] = lambda _: None,
) -> int:
    """Write a site and return its size in bytes; an earlier site in its place is replaced.

    Args:
        out: the folder.
        plan: the contents.
        settings: of the models and their limits.
        on_progress: called with the share that is done.
        on_note: called with what is left out.

    Raises:
        SiteError: the place holds something else, or a text, a chapter or an experiment cannot be
            answered.
        OSError: a file cannot be written.
    """
    _check_place(out)
    try:
        chapters = _chapters(plan.chapters, settings, on_note)
        out.parent.mkdir(parents=True, exist_ok=True)
        root = Path(mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        try:
            folder = Folder(root / "site")
            _fill(folder, plan, chapters, Answers(settings, on_note), on_progress)
            _put(folder.root, out, root / "earlier")
        finally:
            shutil.rmtree(root, ignore_errors=True)
    except ValueError as error:
        raise SiteError(str(error)) from error
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def _put(new: Path, out: Path, earlier: Path) -> None:
    """Put a site into its place; the earlier one stays there if that is interrupted."""
    if out.exists():
        out.rename(earlier)
    try:
        new.rename(out)
    finally:
        if earlier.exists() and not out.exists():
            earlier.rename(out)


def _check_place(out: Path) -> None:
    if not out.exists() or (out / MARK).is_file():
        return
    if not out.is_dir():
        raise SiteError(f"{out} is a file; name a folder")
    if any(out.iterdir()):
        raise SiteError(f"{out} holds something else than a site; name another folder")


def _chapters(
    paths: Sequence[Path], settings: Settings, on_note: Callable[[str], object]
) -> list[Chapter]:
    """Return the chapters that ship, those of the settings, and those of these paths."""
    chapters, faults = Library(settings.chapters_dir).chapters()
    chapters, apart = without_the_zoo(chapters, registry_of(settings).ids)
    for reason in apart.values():
        on_note(f"left out chapter {reason}")
    for path in paths:
        files = sorted(path.glob("*.md")) if path.is_dir() else [path]
        if not files:
            raise ValueError(f"{path} has no chapter: no file ends in .md")
        chapters += [read_file(file) for file in files]
    ids = [chapter.id for chapter in chapters]
    twice = sorted({each for each in ids if ids.count(each) > 1})
    if twice:
        raise ValueError(f"there are two chapters of the name {twice[0]!r}; rename one file")
    if faults:
        raise ValueError(next(iter(faults.values())))
    return sorted(chapters, key=lambda chapter: (chapter.order, chapter.id))


def _fill(
    folder: Folder,
    plan: Plan,
    chapters: list[Chapter],
    answers: Answers,
    on_progress: Callable[[float], object],
) -> None:
    cards = answers.cards()
    by_id = {card["id"]: card for card in cards}
    chapters = list(_of_default(chapters, answers))
    readings = answers.readings(cards, chapters, plan.texts)
    live = list(dict.fromkeys(_live(plan.live, by_id)))
    total = len(readings) + len(chapters) + len(EXPERIMENTS) + EXPORT * len(live)
    done = (on_progress(number / total) for number in range(1, total + 1))

    def exported() -> Iterator[str]:
        for model in live:
            yield model
            for _ in range(EXPORT):
                next(done)

    computed = live_index(exported(), answers.registry, folder.keep_live) if live else None
    texts = []
    for reading in readings:
        if "@" in reading.model:  # a state of a training
            by_id[reading.model] = answers.card(reading.model)
        if reading.model not in by_id:
            raise ValueError(f"there is no model {reading.model!r}; there are {', '.join(by_id)}")
        name = folder.keep("text", answers.archive(reading, by_id[reading.model]))
        texts.append(
            {"model": reading.model, "text": reading.text, "target": reading.target, "file": name}
        )
        next(done)
    files = {}
    for chapter in chapters:
        held = {"chapter": _in_site(chapter), "outcomes": answers.outcomes(chapter)}
        files[f"/api/v1/chapters/{chapter.id}"] = folder.keep("chapter", orjson.dumps(held))
        next(done)
    opened = [step.opens for chapter in chapters for step in chapter.steps]
    for experiment in EXPERIMENTS.values():
        content = orjson.dumps(answers.experiment(experiment, opened))
        files[f"/api/v1/experiments/{experiment.id}"] = folder.keep("experiment", content)
        next(done)
    index = {
        "catalogue": {
            "default": answers.registry.default,
            "models": _with_texts(cards, plan.texts),
        },
        "texts": texts,
        "chapters": {"chapters": [summary_of(chapter) for chapter in chapters], "unavailable": {}},
        "files": files,
        "server": plan.server.rstrip("/"),
    }
    if computed:
        index["live"] = computed
    _write_pages(folder, folder.keep("index", orjson.dumps(index)))


def _live(names: Sequence[str], known: Iterable[str]) -> Iterator[str]:
    """Yield the models of names and globs, such as ``positions-*``."""
    for name in names:
        matched = sorted(model for model in known if fnmatchcase(model, name))
        if not matched:
            raise ValueError(f"--live: there is no model {name!r}; there are {', '.join(known)}")
        yield from matched


def _of_default(chapters: list[Chapter], answers: Answers) -> Iterator[Chapter]:
    """Yield the chapters; of those for any model, the ones that the default model has."""
    for chapter in chapters:
        try:
            yield answers.checker.about(chapter)
        except ValueError as error:
            answers.on_note(f"left out chapter {chapter.title!r}: {error}")


def _with_texts(cards: Sequence[Members], texts: Sequence[Reading]) -> list[Members]:
    """Return the cards with the texts that were given among their examples."""
    shown = []
    for card in cards:
        known = {example["text"] for example in card["examples"]}
        more = [
            {"title": each.text, "text": each.text, "opens": {}}
            for each in texts
            if each.model == card["id"] and each.text not in known
        ]
        shown.append({**card, "examples": [*card["examples"], *more]})
    return shown


def _in_site(chapter: Chapter) -> Members:
    """Return a chapter whose steps open the pages of the site."""
    members = chapter.model_dump(mode="json")
    for step in members["steps"]:
        path, _, state = step["link"].partition("#")
        page = "experiments.html" if path == "/experiments" else "index.html"
        step["link"] = f"{page}#{state}"
        step["then_link"] = None  # what follows an answer is another pass
    return members


def _write_pages(folder: Folder, index: str) -> None:
    code = folder.keep("code", saved_page.code((saved_page.ENTRY, *_EXPERIMENTS), DYNAMIC))
    files = {"packed": code, "index": index, "files": [code, index], "is_site": True}
    sentences = saved_page.document("index.html", ["page", "chapter"], **files)
    folder.write("index.html", sentences)
    styles = ["page", "experiments", "chapter"]
    tabs = {"tabs": experiment_tabs(), "is_saved": False}
    folder.write(
        "experiments.html", saved_page.document("experiments.html", styles, **files, **tabs)
    )
    documentation = list(documents())
    template = Environment(loader=FileSystemLoader(HOME / "templates"), autoescape=True)
    for file, title, prose in documentation:
        text = template.get_template("site_document.html").render(
            **saved_page.shared(["page"]),
            title=title,
            here=file,
            pages=[(each, name) for each, name, _ in documentation],
            prose=Markup(prose),  # rendered from our own Markdown  # noqa: S704
        )
        folder.write(file, text)
    folder.write(MARK, json.dumps({"files": sorted(folder.names)}, indent=1) + "\n")
    worker = (SCRIPTS / "site_worker.js").read_text(encoding="utf-8")
    kept = json.dumps(["./", *sorted(folder.names)])
    contents = (hashlib.sha256((folder.root / name).read_bytes()) for name in sorted(folder.names))
    version = hashlib.sha256("".join(each.hexdigest() for each in contents).encode()).hexdigest()
    folder.write(
        "worker.js", worker.replace("['files']", kept).replace("'version'", f"'{version[:12]}'")
    )
