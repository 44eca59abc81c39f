"""How well the share of a part foretells what its cut changes.

A share of a score is no cause: the softmax, the norms and the other parts stand between it and the
weight. On sentences of the profile, in the strongest cell of each of the ten heads that look
hardest, the edges of three parts of the keys are cut: the largest, the smallest and one drawn at
random. The rank correlation is Spearman's, between the part of the score's lead and the fall of the
logarithm of the weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headlight.model.analysis.score_attribution import Cell, read_for, score_parts
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.circuits.cut import Cut
from headlight.model.circuits.parts import parts_of
from headlight.model.trace import Trace
from headlight.model.tracing import PassSpec, run_batch, tokenize

N_TEXTS, N_HEADS, SEED = 200, 10, 0
STRONG, KEPT = 0.3, 0.9
"""Others stand in for a part with 30 % of the lead whose cut keeps 90 % of the weight."""


class Outcome(NamedTuple):
    """A cut: the head, the part's score and share of the lead, the fall, and the weight kept."""

    head: str
    value: float
    share: float
    fall: float
    kept: float


def share_figures(checkpoint: Checkpoint, n_texts: int = N_TEXTS) -> dict[str, Any]:
    """Compare shares with cuts over sentences of a model's profile.

    Returns:
        ``rank_correlation`` over all cuts, ``by_head``, the numbers of ``texts`` and ``cuts``, and
        ``stood_in``: of the parts with at least 30 % of the lead, those whose cut keeps 90 % of the
        weight. Nothing, if the model has no profile.
    """
    profile = checkpoint.description.heads
    if profile is None:
        return {}
    heads, generator = _strongest_heads(profile), np.random.default_rng(SEED)
    outcomes: list[Outcome] = []
    texts = profile["examples"][:n_texts]
    for example in texts:
        text = tokenize(checkpoint, example["text"], example["target"] or None)
        spec = PassSpec(tuple(dict.fromkeys(f"{path}.weights" for path, _ in heads)))
        (trace,) = run_batch(checkpoint, spec, [text])
        for path, head in heads:
            outcomes += _outcomes(checkpoint, trace, path, head, generator)
    strong = [each for each in outcomes if each.share >= STRONG]
    names = sorted({each.head for each in outcomes})
    return {
        "texts": len(texts),
        "cuts": len(outcomes),
        "rank_correlation": _correlation(outcomes),
        "by_head": {
            name: _correlation([each for each in outcomes if each.head == name]) for name in names
        },
        "strong": len(strong),
        "stood_in": sum(each.kept >= KEPT for each in strong) / max(1, len(strong)),
    }


def _strongest_heads(profile: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the heads behind the first layer whose strongest weights are largest on average."""
    sizes = {
        (path, number): float(np.mean([each["weight"] for each in head["strongest"]] or [0]))
        for path, heads in profile["attentions"].items()
        if ".layers.0." not in path
        for number, head in enumerate(heads)
    }
    return sorted(sizes, key=lambda each: -sizes[each])[:N_HEADS]


def _outcomes(
    checkpoint: Checkpoint, trace: Trace, path: str, head: int, generator: np.random.Generator
) -> list[Outcome]:
    """Return the cuts of the strongest cell of a head in a text, off the start and the query."""
    weights = np.tril(trace[f"{path}.weights"][head], -1)
    weights[:, 0] = 0
    query, key = map(int, np.unravel_index(weights.argmax(), weights.shape))
    cell = Cell(path=path, head=head, query=query, key=key)
    made = score_parts(checkpoint, read_for(checkpoint, trace, path, query), cell)
    reader = next(
        each.name
        for each in parts_of(checkpoint).graph.readers
        if each.path == path and each.kind == "key" and head in each.heads
    )
    shares = {
        part.name: float(value)
        for part, value in zip(made.key_parts, made.key_side, strict=True)
        if part.kind in ("head", "network")
    }
    ranked = sorted(shares, key=lambda name: shares[name])
    chosen = dict.fromkeys([ranked[-1], ranked[0], str(generator.choice(ranked[1:-1]))])
    layer = path.split(".")[2]
    outcomes = []
    for name in chosen:
        cut = Cut(edges=(f"{name}→{reader}",)).with_model(checkpoint)
        text = tokenize(checkpoint, trace.text, trace.target)
        spec = PassSpec((f"{path}.rows",), None, (cut,), queries=(query,))
        after = float(run_batch(checkpoint, spec, [text])[0][f"{path}.rows"][head, 0, key])
        before = made.weights[0]
        fall = float(np.log(before) - np.log(max(after, 1e-12)))
        share = shares[name] / abs(made.score or 1.0)
        outcomes.append(Outcome(f"{layer}.{head}", shares[name], share, fall, after / before))
    return outcomes


def _correlation(outcomes: Sequence[Outcome]) -> float:
    """Return Spearman's rank correlation of the parts' values and the falls."""
    ranks = [
        np.argsort(np.argsort([getattr(each, name) for each in outcomes]))
        for name in ("value", "fall")
    ]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
