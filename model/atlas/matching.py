"""Match the heads of two models by what they do over many texts.

Two heads are as similar as one minus the mean difference of the scores of their profiles. The
assignment that is best in sum is that of Kuhn 1955, https://doi.org/10.1002/nav.3800020109.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headlight.model.extras import needed_by

LEFT_OUT = frozenset({"first_token", "first_word"})
"""Scores that are parts of another."""


class Head(NamedTuple):
    """A head: the path of its attention, its number, and its profile."""

    attention: str
    number: int
    profile: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """``self_attention`` or ``cross_attention``: only heads of one kind are matched."""
        return self.attention.rpartition(".")[2]


Pair = tuple[Head, Head]


def heads_of(profile: Mapping[str, Any]) -> list[Head]:
    """Return the heads that a profile describes."""
    return [
        Head(path, number, head)
        for path, heads in profile["attentions"].items()
        for number, head in enumerate(heads)
    ]


def match(heads: Sequence[Head], others: Sequence[Head]) -> list[Pair]:
    """Assign each head to one of the other model, as many as the smaller model has of a kind.

    Raises:
        ImportError: SciPy is not installed.
    """
    with needed_by("comparing the heads of two models", "SciPy"):
        from scipy.optimize import linear_sum_assignment
    matches: list[Pair] = []
    for kind in dict.fromkeys(head.kind for head in heads):
        ours, theirs = ([head for head in of if head.kind == kind] for of in (heads, others))
        if theirs:
            similarities = np.array([[similarity(a, b) for b in theirs] for a in ours])
            rows, columns = linear_sum_assignment(similarities, maximize=True)
            matches += [(ours[row], theirs[at]) for row, at in zip(rows, columns, strict=True)]
    return matches


def similarity(head: Head, other: Head) -> float:
    """Return how alike two heads attend, from 0 to 1."""
    scores, others = head.profile["scores"], other.profile["scores"]
    shared = (scores.keys() & others.keys()) - LEFT_OUT
    differences = [abs(scores[name]["score"] - others[name]["score"]) for name in shared]
    return 1 - float(np.mean(differences)) if shared else 0.0
