"""The files of an atlas.

- ``atlas.json``: what was read, with which settings, and the shards; it is written last.
- ``heads.json``: the profile of every head (`headlight.model.checkpoint.profile`), over all text.
- ``summary.json``: of every head its commonest pairs, distances, tags and strongest sentences, for
  those who cannot read Parquet.
- ``edges/ATTENTION/SHARD.parquet``: the weights, sorted by the word of the key.
- ``tokens/SHARD.parquet`` and ``sentences/SHARD.parquet``: what was read.
- ``shards/SHARD.json``: the sums of one shard. It is written when all else of the shard is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from headlight.model.checkpoint.card import fits
from headlight.model.checkpoint.files import read_file

MANIFEST, HEADS, SUMMARY = "atlas.json", "heads.json", "summary.json"
EDGES, TOKENS, SENTENCES, SHARDS = "edges", "tokens", "sentences", "shards"
FORMAT = 1
ATLAS = "atlas"
"""The folder of a model's atlas in the model's folder."""

SHARD_BITS = 24
"""The number of a sentence is that of its shard times 2^24 plus its place in the shard."""

FULL_WEIGHT = 65_535
"""Weights are stored as 16-bit fractions of this."""

MAX_MANIFEST, MAX_SUMMARY = 2**26, 2**26

_ATTENTION = {
    "n_heads": int,
    "n_edges": int,
    "stack": str,
    "is_causal": int,
    "is_cross": int,
    "window": int,
    "chunk": int,
}
"""Yes and no are 1 and 0; a window or chunk of 0 is none."""
_SHAPE = {
    "format": int,
    "model": str,
    "revision": str,
    "threshold": float,
    "n_sample": int,
    "tagger": str,
    "has_target": int,
    "left_out": int,
    "text": [str],
    "shards": [str],
    "sentences": int,
    "tokens": int,
    "edges": int,
    "attentions": {str: _ATTENTION},
}
_PAIR = {"query": str, "key": str, "count": int}
_DISTANCE = {"distance": int, "count": int}
SENTENCE = {
    "text": str,
    "target": str,
    "query": int,
    "key": int,
    "query_word": str,
    "key_word": str,
    "query_span": [int],
    "key_span": [int],
    "weight": float,
}
_HEAD = {
    "edges": int,
    "pairs": [_PAIR],
    "distances": [_DISTANCE],
    "tags": [_PAIR],
    "sentences": [SENTENCE],
}


class AtlasError(ValueError):
    """An atlas is missing, damaged or of another model; the message gives the way out."""


@dataclass(frozen=True)
class Atlas:
    """A complete atlas in a folder: its facts as ``atlas.json`` has them."""

    folder: Path
    facts: Mapping[str, Any]

    @property
    def attentions(self) -> Mapping[str, Mapping[str, Any]]:
        """The attentions by path."""
        attentions: Mapping[str, Mapping[str, Any]] = self.facts["attentions"]
        return attentions

    def files(self, kind: str, attention: str = "") -> list[str]:
        """Return the Parquet files of one kind, in the order of the text."""
        folder = self.folder / kind / attention if attention else self.folder / kind
        return [str(folder / f"{shard}.parquet") for shard in self.facts["shards"]]

    def summary(self) -> Mapping[str, Any]:
        """Return the commonest of every head, by attention.

        Raises:
            AtlasError: the file is damaged.
        """
        summary = _read(self.folder, SUMMARY, MAX_SUMMARY)
        _require(self.folder / SUMMARY, fits(summary, {str: [_HEAD]}))
        checked: Mapping[str, Any] = summary
        return checked


def read_atlas(folder: Path, revision: str | None = None) -> Atlas:
    """Return the atlas in a folder.

    Args:
        folder: of the atlas.
        revision: of the model that it must be of; None: any.

    Raises:
        AtlasError: there is none, it is damaged, not complete, or of another model.
    """
    if not (folder / MANIFEST).is_file():
        begun = (folder / SHARDS).is_dir()
        way_out = (
            "run its 'headlight atlas build' again, which goes on where it stopped"
            if begun
            else "'headlight atlas build MODEL CORPUS --out FOLDER' makes one"
        )
        what = "is not complete" if begun else "holds no atlas"
        raise AtlasError(f"{folder} {what}; {way_out}")
    facts = _read(folder, MANIFEST, MAX_MANIFEST)
    _require(folder / MANIFEST, fits(facts, _SHAPE) and facts["format"] == FORMAT)
    is_plain = all(name == Path(name).name for name in [*facts["shards"], *facts["attentions"]])
    _require(folder / MANIFEST, is_plain)
    if revision is not None and facts["revision"] != revision:
        raise AtlasError(
            f"{folder} is the atlas of revision {facts['revision']} of '{facts['model']}', not of "
            f"{revision}; build it again"
        )
    return Atlas(folder.resolve(), facts)


def _read(folder: Path, name: str, max_bytes: int) -> Any:
    try:
        return orjson.loads(read_file(folder, name, max_bytes))
    except (OSError, ValueError, RecursionError) as error:
        raise AtlasError(f"{folder / name} cannot be read: {error}") from error


def _require(path: Path, is_fitting: bool) -> None:
    if not is_fitting:
        raise AtlasError(f"{path} is malformed; build the atlas again")
