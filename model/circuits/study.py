"""A study: circuits and cuts of some models on a task, from one small file that can be run again.

    title = "Agreement in stories"
    question = "Which edges let a verb agree with its subject?"
    models = ["stories"]
    task = "agreement"          # one that ships, or the name of a file next to this one
    n_pairs = 64

    [[circuits]]                # members of the API's circuit request, with a name
    name = "pruned"
    rule = "pruned"
    n_edges = 40

    [[cuts]]                    # all edges of the model but these
    name = "without the last head"
    edges = ["3.3→logits"]

Each part of a study is kept as it is done, under a name made of all that decides its numbers, the
revision of the model included. A study that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STUDIES = Path(__file__).with_name("studies")
MAX_BYTES = 2**20
MOST_PARTS = 64
_TOP = {"title": str, "question": str, "models": list, "task": str, "n_pairs": int}
_LISTS = ("circuits", "cuts")


class StudyError(ValueError):
    """A file that is not a study; the message names the member and the rule."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a study: one circuit or cut of one model.

    ``request`` are the members of a circuit request; of a cut, ``edges`` are those that are cut.
    """

    kind: str
    name: str
    model: str
    request: Mapping[str, Any]

    def key(self, revision: str) -> str:
        """Return a name that is the same for the same numbers."""
        asked = [self.kind, self.model, revision, dict(self.request)]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study: its title, its question, its parts in order, and the text of its file."""

    title: str
    question: str
    parts: tuple[Part, ...]
    source: str


def find_study(name: str) -> Path:
    """Return the file of a study that ships, or the file of that name.

    Raises:
        StudyError: there is neither.
    """
    shipped = STUDIES / f"{name}.toml"
    if name.isidentifier() and shipped.is_file():
        return shipped
    path = Path(name)
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in STUDIES.glob("*.toml")))
        raise StudyError(f"{name} is neither a file nor a study that ships; there are {known}")
    return path


def read_study(path: Path) -> Study:
    """Return the study of a file.

    Raises:
        StudyError: it cannot be read, or is not a study.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise StudyError(f"{path} is larger than {MAX_BYTES:,} bytes")
        source = path.read_text(encoding="utf-8")
        content = tomllib.loads(source)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from error
    for name, value in content.items():
        if name not in (*_TOP, *_LISTS):
            raise StudyError(f"{path} has the unknown {name!r}; a study has {', '.join(_TOP)}, …")
        kind = list if name in _LISTS else _TOP[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise StudyError(f"{path}: {name} must be of type {kind.__name__}")
    parts = tuple(_parts(path, content))
    if not parts:
        raise StudyError(f"{path} has no [[circuits]] and no [[cuts]]")
    if len(parts) > MOST_PARTS:
        raise StudyError(f"{path} has {len(parts)} parts; {MOST_PARTS} are allowed")
    return Study(
        title=content.get("title", path.stem),
        question=content.get("question", ""),
        parts=parts,
        source=source,
    )


def _parts(path: Path, content: Mapping[str, Any]) -> Iterator[Part]:
    for kind in _LISTS:
        for number, given in enumerate(content.get(kind, ())):
            where = f"{path}, {kind}.{number}"
            if not isinstance(given, dict) or not isinstance(given.get("name"), str):
                raise StudyError(f"{where} needs a name")
            members = {name: value for name, value in given.items() if name != "name"}
            models = members.pop("models", content.get("models"))
            if not models or not all(isinstance(each, str) for each in models):
                raise StudyError(f"{where} needs models: a list of ids")
            members.setdefault("n_pairs", content.get("n_pairs", 32))
            task = members.pop("task", content.get("task"))
            if not isinstance(task, str):
                raise StudyError(f"{where} needs a task: the name of one that ships, or of a file")
            if kind == "cuts" and not members.get("edges"):
                raise StudyError(f"{where} needs edges: the names of those that are cut")
            members |= _pairs(path, task)
            for model in models:
                yield Part(kind=kind, name=given["name"], model=model, request=members)


def _pairs(path: Path, task: str) -> dict[str, Any]:
    from headlight.model.circuits.tasks import TASKS, UnfitTask, as_request, read_task

    if task in TASKS:
        return {"task": task}
    try:
        return {"pairs": as_request(read_task(path.parent / task))}
    except UnfitTask as error:
        raise StudyError(str(error)) from error


Answer = Mapping[str, Any]
Answering = Callable[[Sequence[Part]], Iterable[tuple[int, Answer]]]
"""Yields the number of a part and its answer, in any order."""


def run_study(
    study: Study,
    folder: Path,
    compute: Answering,
    revision_of: Callable[[str], str],
    tell: Callable[[Part, bool], object] = lambda part, is_kept: None,
) -> list[tuple[Part, Answer]]:
    """Return the answer to each part of a study; those that are kept are not computed.

    Args:
        study: the study.
        folder: where the answers are kept, each as soon as it is there.
        compute: yields the answers to the parts that are not.
        revision_of: the revision of a model.
        tell: called with each part that is kept, and True; and with each that is done, and False.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{part.key(revision_of(part.model))}.json" for part in study.parts]
    answers = [_kept(path) for path in paths]
    for part, answer in zip(study.parts, answers, strict=True):
        if answer is not None:
            tell(part, True)
    missing = [number for number, answer in enumerate(answers) if answer is None]
    for place, answer in compute([study.parts[number] for number in missing]):
        number = missing[place]
        partial = paths[number].with_suffix(".partial")
        partial.write_text(json.dumps(answer), encoding="utf-8")
        partial.replace(paths[number])
        answers[number] = answer
        tell(study.parts[number], False)
    return [
        (part, answer)
        for part, answer in zip(study.parts, answers, strict=True)
        if answer is not None
    ]


def _kept(path: Path) -> Mapping[str, Any] | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) else None


Row = Mapping[str, str | int | float | None]


def tables_of(
    answers: Sequence[tuple[Part, Mapping[str, Any]]],
) -> dict[str, list[Row]]:
    """Return the results as tables: ``figures``, ``curve`` and ``edges``, one row each."""
    tables: dict[str, list[Row]] = {"figures": [], "curve": [], "edges": []}
    for part, answer in answers:
        begin: dict[str, str | int | float | None] = {
            "model": part.model,
            "revision": answer["revision"],
            "kind": part.kind,
            "name": part.name,
        }
        for pairs in ("chosen", "held_out"):
            if (figures := answer[pairs]) is not None:
                low, high = figures["interval"]
                rest = {k: v for k, v in figures.items() if k != "interval"}
                n_edges = {"n_edges": len(answer["edges"]), "complement": answer["complement"]}
                tables["figures"].append(
                    {**begin, "pairs": pairs, **rest, "low": low, "high": high, **n_edges}
                )
        tables["curve"] += [{**begin, **point} for point in answer["curve"]]
        if part.kind == "circuits":
            tables["edges"] += [
                {**begin, "edge": each["name"], "score": each["score"], "loss": each["loss"]}
                for each in answer["edges"]
            ]
    return tables
