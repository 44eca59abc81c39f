"""Head profiles: what each head of a model does on many sentences, stored next to its weights.

``headlight profile MODEL`` measures a profile (`headlight.model.profiles.measure`) and
writes it to ``heads.json``. It names the revision of the model that it was measured on; a profile
of another revision counts for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headlight.model.checkpoint.card import read_shaped
from headlight.model.extras import needed_by

HEADS = "heads.json"
MAX_BYTES = 2**22

LEAST_SCORE = 0.25
ABOVE_CONTROL = 2.0
THRESHOLDS = {"broad": 0.9, "monotonic": 0.5}
"""The least score of a label that has no control."""
PARTS = ("first_token", "first_word")
"""Scores that are not labels: they are parts of the sink."""

_SCORE = {"score": float, "control": float}
_STRONGEST = {
    "sentence": int,
    "query": int,
    "key": int,
    "weight": float,
    "query_span": [int],
    "key_span": [int],
}
_HEAD = {
    "labels": [str],
    "scores": {str: _SCORE},
    "entropy": float,
    "distance": float,
    "cost?": float,
    "strongest": [_STRONGEST],
}
_FEEDER = {"name": str, "share": float, "control": float}
SHAPE = {
    "revision": str,
    "text": [str],
    "sentences": int,
    "tokens": int,
    "bits_per_byte?": float,
    "ablated_in?": int,
    "controlled": {str: int},
    "attentions": {str: [_HEAD]},
    "examples": [{"text": str, "target": str}],
    "feeders?": {str: [{"queries": [_FEEDER], "keys": [_FEEDER], "values": [_FEEDER]}]},
}


def is_whole(profile: Mapping[str, Any]) -> bool:
    """Return True if the cost of each head was measured too, and not only its labels."""
    return all("cost" in head for heads in profile["attentions"].values() for head in heads)


def labels_of(scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the labels of a head, the highest score first.

    A score is a label if it is at least a quarter and at least twice its control: what uniform
    attention would give or, for the subject of a verb and the antecedent of a pronoun, the weight
    on the other noun of the sentence. ``broad`` and ``monotonic``, which have no control, need the
    scores of `THRESHOLDS`.
    """
    labels = [
        name
        for name, of_name in scores.items()
        if name not in PARTS and of_name["score"] >= _least(name, of_name["control"])
    ]
    return sorted(labels, key=lambda name: -scores[name]["score"])


def _least(name: str, control: float) -> float:
    return THRESHOLDS.get(name, max(LEAST_SCORE, ABOVE_CONTROL * control))


def head_labels(profile: Mapping[str, Any]) -> dict[str, list[dict[str, float]]]:
    """Return the labels of each head with their scores, by attention, of a whole profile."""
    return {
        path: [
            {label: head["scores"][label]["score"] for label in head["labels"]} for head in heads
        ]
        for path, heads in profile["attentions"].items()
    }


def read_profile(folder: Path, revision: str) -> Mapping[str, Any] | None:
    """Return the profile in a model's folder; None if there is none of this revision.

    Raises:
        CheckpointError: the file is damaged.
    """
    if not (folder / HEADS).exists():
        return None
    way_out = "remove it, and measure it again with 'headlight profile'"
    profile: Mapping[str, Any] = read_shaped(folder, HEADS, MAX_BYTES, SHAPE, way_out)
    return profile if profile["revision"] == revision else None


def as_parquet(profile: Mapping[str, Any]) -> bytes:
    """Return the heads as a table of Parquet: each score and its control, a column each.

    Raises:
        ImportError: PyArrow is not installed.
    """
    with needed_by("the table of the heads", "PyArrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    rows = [
        {"attention": path, "head": number, "labels": ", ".join(head["labels"])}
        | {name: of["score"] for name, of in head["scores"].items()}
        | {f"{name}_control": of["control"] for name, of in head["scores"].items()}
        | {name: head.get(name) for name in ("entropy", "distance", "cost")}
        | {"sentences": profile["sentences"]}
        for path, heads in profile["attentions"].items()
        for number, head in enumerate(heads)
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), sink)
    return bytes(sink.getvalue())


def to_json(profile: Mapping[str, Any]) -> str:
    """Return a profile as JSON, one line for each head and each sentence."""
    lines = []
    for name, value in profile.items():
        if name in ("attentions", "feeders"):
            inner = ",\n".join(
                f"{json.dumps(path)}: [\n" + ",\n".join(map(_compact, heads)) + "]"
                for path, heads in value.items()
            )
            lines.append(f'"{name}": {{\n{inner}}}')
        elif name == "examples":
            lines.append('"examples": [\n' + ",\n".join(map(_compact, value)) + "]")
        else:
            lines.append(f"{json.dumps(name)}: {_compact(value)}")
    return "{" + ",\n".join(lines) + "}\n"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
