"""Match the heads of two models by what they do over many texts, and say where the two part.

Two heads are as similar as one minus the mean difference of the scores of their profiles. The
assignment that is best in sum is that of Kuhn 1955, https://doi.org/10.1002/nav.3800020109.

Of two models that cut texts alike, the attention of matched heads is compared text by text: the
share that moved is half the sum of absolute differences of a row, averaged over rows. By chance is
what moves between a head and the counterpart of the next in the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from headlight.model.atlas.space import LEAST_SENTENCES, captured, texts_of
from headlight.model.extras import needed_by
from headlight.model.served import Served

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


def moved(
    model: Served, other: Served, pairs: Sequence[Pair]
) -> tuple[list[str], Float[np.ndarray, "2 pair text"]]:
    """Return texts that both models cut alike, and the shares of attention that moved in them.

    The first are those of the pairs, the second those by chance. No text: fewer than fifty are
    alike, or there are two kinds of attention.

    Raises:
        AtlasError, CorpusError: a model reads too few of the texts.
        Cancelled: as `headlight.model.cancellation`.
    """
    ours, theirs = (
        {(each.text, *(token.text for token in each.tokens)): each for each in texts_of(of)}
        for of in (model, other)
    )
    texts = [text for text in ours if text in theirs]
    if len(texts) < LEAST_SENTENCES or len({head.kind for head, _ in pairs}) > 1:
        return [], np.zeros((2, len(pairs), 0))
    shares = np.zeros((2, len(pairs), len(texts)))
    sites = [
        list(dict.fromkeys(f"{head.attention}.weights" for head in side))
        for side in zip(*pairs, strict=True)
    ]
    passes = zip(
        captured(model, [ours[text] for text in texts], sites[0]),
        captured(other, [theirs[text] for text in texts], sites[1]),
        strict=True,
    )
    for (number, of_ours), (_, of_theirs) in passes:
        n = len(ours[texts[number]].tokens)
        a, b = (
            np.stack([held[f"{head.attention}.weights"][head.number, 1:n, :n] for head in side])
            for held, side in zip((of_ours, of_theirs), zip(*pairs, strict=True), strict=True)
        )
        for at, shown in enumerate((b, np.roll(b, -1, axis=0))):
            shares[at, :, number] = np.abs(a - shown).sum(axis=2).mean(axis=1) / 2
    return [text for text, *_ in texts], shares


def compared(
    model: Served, other: Served, profiles: Sequence[Mapping[str, Any]], n_texts: int
) -> dict[str, Any]:
    """Return the matches of two models' heads, and the texts in which they part most, as an answer.

    Raises:
        ImportError, AtlasError, CorpusError, Cancelled: as `match` and `moved`.
    """
    pairs = match(*map(heads_of, profiles))
    texts, shares = moved(model, other, pairs)
    by_text, by_chance = shares.mean(axis=1)
    means = shares.mean(axis=2).tolist() if texts else np.full((2, len(pairs)), None).tolist()
    return {
        "other": other.id,
        "matches": [
            {
                "attention": head.attention,
                "head": head.number,
                "other_attention": match.attention,
                "other_head": match.number,
                "similarity": similarity(head, match),
                "similar_by_chance": similarity(head, pairs[(at + 1) % len(pairs)][1]),
                "moved": means[0][at],
                "by_chance": means[1][at],
            }
            for at, (head, match) in enumerate(pairs)
        ],
        "n_texts": len(texts),
        "texts": [
            {"text": texts[at], "moved": float(by_text[at]), "by_chance": float(by_chance[at])}
            for at in np.argsort(-by_text / by_chance)[:n_texts]  # in a long text all moves more
        ],
    }
