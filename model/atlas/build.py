"""Build an atlas: read the shards that are not done, join their sums, summarise.

Nothing is kept of a shard but its files, so memory does not grow with the corpus; a build that was
interrupted goes on with the shards that are missing. The order in which shards are read does not
matter: their sums are added in the order of the text.
"""

from __future__ import annotations

import heapq
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson
from filelock import FileLock, Timeout

from headlight.model.atlas import layout
from headlight.model.atlas.layout import AtlasError
from headlight.model.atlas.ranges import Range, plan
from headlight.model.atlas.shards import Settings, write, write_shard
from headlight.model.atlas.summary import summarise
from headlight.model.attention.terms import AttentionFacts
from headlight.model.checkpoint.profile import to_json
from headlight.model.profiles.measure import (
    Sentences,
    finished_profile,
    longest_sentence,
    no_sentence,
)
from headlight.model.profiles.sums import HeadSums, Reader, Sight
from headlight.model.served import Served
from headlight.model.tracing import tokenize

PLAN, LOCK = "plan.json", ".lock"


@dataclass(frozen=True)
class Progress:
    """How far a build is: bytes of the corpus and tokens, and the tokens of this run a second."""

    n_bytes: int
    total_bytes: int
    n_tokens: int
    tokens_per_second: float
    seconds_left: float


ReadShards = Callable[[Sequence[Range]], Iterable[dict[str, Any]]]
"""Reads ranges in any order and yields what `write_shard` returns, as each is done."""


def build(
    checkpoint: Served,
    corpus: Sequence[Path],
    out: Path,
    settings: Settings | None = None,
    *,
    read_shards: ReadShards | None = None,
    on_progress: Callable[[Progress], object] = lambda _: None,
    is_forced: bool = False,
) -> Mapping[str, Any]:
    """Build the atlas of a model over a corpus in a folder, or go on with it.

    Args:
        checkpoint: the model; any with attention weights.
        corpus: files and folders.
        out: the folder.
        settings: what to keep.
        read_shards: reads the shards elsewhere; None: in this process.
        on_progress: called after each shard.
        is_forced: whether another atlas in the folder is removed.

    Returns:
        The facts of the atlas, as ``atlas.json`` has them.

    Raises:
        AtlasError: the folder holds another atlas or something else, or another build writes it.
        CorpusError: the text is damaged, or has no sentence that can be read.
        OSError: a file cannot be written.
        ImportError: PyArrow or DuckDB is not installed.
    """
    settings = settings or Settings()
    ranges = plan(corpus)
    if not Reader(checkpoint).facts:
        raise AtlasError(f"the model '{checkpoint.id}' shows no attention weights")
    named = settings.named(checkpoint)
    keys = {part.number: part.key(named) for part in ranges}
    _prepare(out, {"atlas": sorted(keys.values())}, is_forced=is_forced)
    try:
        with FileLock(out / LOCK, timeout=0):
            _read_missing(checkpoint, ranges, settings, out, read_shards, on_progress)
            return _finish(checkpoint, ranges, settings, out)
    except Timeout:
        raise AtlasError(
            f"another build writes {out}; wait for it, or name another folder"
        ) from None


def _prepare(out: Path, planned: Mapping[str, Any], *, is_forced: bool) -> None:
    """Make the folder; one with other content than of this atlas is refused."""
    path = out / PLAN
    if out.exists() and not out.is_dir():
        raise AtlasError(f"{out} is a file; name a folder")
    if is_forced and path.is_file():
        shutil.rmtree(out)
    is_other = out.is_dir() and any(out.iterdir()) and not path.is_file()
    if is_other:
        raise AtlasError(f"{out} holds other files; name a new folder")
    content = orjson.dumps(planned)
    if path.is_file():
        if path.read_bytes() == content:
            return
        raise AtlasError(
            f"{out} holds an atlas of another model, text or settings; name another folder, or add "
            "--force to replace it"
        )
    write(path, lambda partial: partial.write_bytes(content))


def _read_missing(
    checkpoint: Served,
    ranges: Sequence[Range],
    settings: Settings,
    out: Path,
    read_shards: ReadShards | None,
    on_progress: Callable[[Progress], object],
) -> None:
    named = settings.named(checkpoint)
    done = {path.stem for path in (out / layout.SHARDS).glob("*.json")}
    missing = [part for part in ranges if part.key(named) not in done]
    # The bytes of a row group are not known before it is read.
    is_file = {part.number: not part.path.lower().endswith(".parquet") for part in ranges}
    sizes = {part.number: part.end - part.start if is_file[part.number] else 1 for part in ranges}
    total = sum(sizes.values())
    n_bytes = total - sum(sizes[part.number] for part in missing)
    began, before, n_tokens = perf_counter(), n_bytes, 0

    def here(parts: Sequence[Range]) -> Iterator[dict[str, Any]]:
        for part in parts:
            yield write_shard(checkpoint, part, settings, out)

    for result in (read_shards or here)(missing):
        n_bytes += sizes[result["number"]]
        n_tokens += result["tokens"]
        took = perf_counter() - began
        left = took * (total - n_bytes) / max(n_bytes - before, 1)
        on_progress(Progress(n_bytes, total, n_tokens, n_tokens / took, left))


def _shards(out: Path, keys: Iterable[str]) -> Iterator[dict[str, Any]]:
    for key in keys:
        path = out / layout.SHARDS / f"{key}.json"
        try:
            yield orjson.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise AtlasError(f"{path} is damaged; remove it and build again: {error}") from error


def _finish(
    checkpoint: Served, ranges: Sequence[Range], settings: Settings, out: Path
) -> Mapping[str, Any]:
    """Join the shards: profile, summary and facts."""
    facts = Reader(checkpoint).facts
    is_paired = checkpoint.config.kind == "encoder-decoder"
    keys = [part.key(settings.named(checkpoint)) for part in ranges]
    sums = {path: HeadSums(of_path.n_heads) for path, of_path in facts.items()}
    counts = dict.fromkeys(("sentences", "tokens", "left_out"), 0)
    n_edges = dict.fromkeys(facts, 0)
    texts: dict[tuple[int, int], tuple[str, str]] = {}
    sample: list[tuple[str, int, int, str, str]] = []
    for shard in _shards(out, keys):
        for path, of_path in sums.items():
            of_path.merge(HeadSums.from_dict(shard["sums"][path]))
            of_path.trim()
            n_edges[path] += shard["edges"][path]
        for name in counts:
            counts[name] += shard[name]
        texts |= {(shard["number"], int(n)): tuple(both) for n, both in shard["texts"].items()}
        shown = {
            tuple(place["order"])
            for of_path in sums.values()
            for places in of_path.strongest
            for place in places.values()
        }
        texts = {order: both for order, both in texts.items() if order in shown}
        some = [(digest, shard["number"], *rest) for digest, *rest in shard["sample"]]
        sample = heapq.nsmallest(settings.n_sample, [*sample, *some])
    if not counts["sentences"]:
        raise no_sentence(longest_sentence(checkpoint))
    for of_path in sums.values():
        for places in of_path.strongest:
            for place in places.values():
                place["order"] = tuple(place["order"])
    sentences = Sentences(
        n=counts["sentences"],
        n_tokens=counts["tokens"],
        sample=[
            tokenize(checkpoint, text, target if is_paired else None)
            for *_, text, target in sorted(sample, key=lambda one: one[1:3])
        ],
        example=lambda order: texts[order],
    )
    names = list(dict.fromkeys(Path(part.path).name for part in ranges))
    profile = {"text": names, **finished_profile(checkpoint, sums, sentences)}
    write(out / layout.HEADS, lambda path: path.write_text(to_json(profile), "utf-8"))
    manifest = {
        "format": layout.FORMAT,
        "model": checkpoint.id,
        "revision": checkpoint.description.revision,
        **asdict(settings),
        "text": names,
        "shards": keys,
        **counts,
        "edges": sum(n_edges.values()),
        "attentions": _attentions(facts, n_edges),
        "has_target": int(is_paired),
    }
    summary = summarise(layout.Atlas(out.resolve(), manifest))
    write(out / layout.SUMMARY, lambda path: path.write_bytes(orjson.dumps(summary)))
    content = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
    write(out / layout.MANIFEST, lambda path: path.write_bytes(content))
    return manifest


def _attentions(
    facts: Mapping[str, AttentionFacts], n_edges: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """Return what the manifest says of each attention."""
    return {
        path: {
            "n_heads": of_path.n_heads,
            "n_edges": n_edges[path],
            "stack": (sight := Sight.of(of_path)).stack,
            "is_causal": int(sight.is_causal),
            "is_cross": int(sight.is_cross),
            "window": sight.window or 0,
            "chunk": sight.chunk or 0,
        }
        for path, of_path in facts.items()
    }
