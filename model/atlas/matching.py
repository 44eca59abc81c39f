"""Match the heads of two models by what they do over a corpus.

The heads are described by the same statistics, each a distribution: the distances of their weights,
the parts of speech of query and key, and the scores of their profiles. Two heads are as similar as
the mean of their Bhattacharyya coefficients, Σ √(p·q), and of one minus the mean difference of
their scores. The assignment that is best in sum is that of Kuhn 1955,
https://doi.org/10.1002/nav.3800020109.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headlight.model.extras import missing

LEFT_OUT = frozenset({"first_token", "first_word"})
"""Scores that are parts of another."""

MISSING = missing("comparing the heads of two models", "SciPy")


@dataclass(frozen=True)
class Head:
    """A head and its statistics: the entry of a summary, and that of a profile."""

    attention: str
    number: int
    summary: Mapping[str, Any]
    profile: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """``self_attention`` or ``cross_attention``: only heads of one kind are matched."""
        return self.attention.rpartition(".")[2]


@dataclass(frozen=True)
class Match:
    """A head, the head of the other model, and their similarity from 0 to 1."""

    head: Head
    other: Head
    similarity: float


def heads_of(summary: Mapping[str, Any], profile: Mapping[str, Any]) -> list[Head]:
    """Return the heads that an atlas's summary and profile describe."""
    return [
        Head(path, number, of_summary, of_profile)
        for path, of_path in summary.items()
        for number, (of_summary, of_profile) in enumerate(
            zip(of_path, profile["attentions"].get(path, ()), strict=False)
        )
    ]


def match(heads: Sequence[Head], others: Sequence[Head]) -> list[Match]:
    """Assign each head to one of the other model, as many as the smaller model has of a kind.

    Raises:
        ImportError: SciPy is not installed.
    """
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError as error:
        raise ImportError(MISSING) from error
    matches: list[Match] = []
    for kind in dict.fromkeys(head.kind for head in heads):
        ours = [head for head in heads if head.kind == kind]
        theirs = [head for head in others if head.kind == kind]
        if not theirs:
            continue
        similarities = np.array([[similarity(a, b) for b in theirs] for a in ours])
        rows, columns = linear_sum_assignment(similarities, maximize=True)
        matches += [
            Match(ours[row], theirs[column], float(similarities[row, column]))
            for row, column in zip(rows, columns, strict=True)
        ]
    return matches


def similarity(head: Head, other: Head) -> float:
    """Return how alike two heads attend, from 0 to 1."""
    parts = [
        _overlap(_distances(head), _distances(other)),
        _overlap(_tags(head), _tags(other)),
        _alike(_scores(head), _scores(other)),
    ]
    return float(np.mean(parts))


def _overlap(counts: Mapping[Any, int], others: Mapping[Any, int]) -> float:
    names = sorted(counts.keys() | others.keys(), key=str)
    p, q = (_shares(of, names) for of in (counts, others))
    return float(np.sqrt(p * q).sum())


def _shares(counts: Mapping[Any, int], names: Sequence[Any]) -> Float[np.ndarray, " name"]:
    values = np.array([counts.get(name, 0) for name in names], dtype=np.float64)
    shares: Float[np.ndarray, " name"] = values / max(values.sum(), 1.0)
    return shares


def _distances(head: Head) -> dict[Any, int]:
    return {entry["distance"]: entry["count"] for entry in head.summary["distances"]}


def _tags(head: Head) -> dict[Any, int]:
    return {(entry["query"], entry["key"]): entry["count"] for entry in head.summary["tags"]}


def _scores(head: Head) -> dict[str, float]:
    scores = head.profile["scores"]
    return {name: of["score"] for name, of in scores.items() if name not in LEFT_OUT}


def _alike(scores: Mapping[str, float], others: Mapping[str, float]) -> float:
    shared = scores.keys() & others.keys()
    if not shared:
        return 0.0
    return 1 - float(np.mean([abs(scores[name] - others[name]) for name in shared]))
