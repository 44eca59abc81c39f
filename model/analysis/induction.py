"""The strongest induction head of a model, by measure, and the earlier head that feeds it.

An induction head reads the token that followed the last time (Olsson et al. 2022,
https://arxiv.org/abs/2209.11895). It finds it by what an earlier head wrote there, mostly one that
reads the token before: the largest head on the key side of its score (`score_attribution`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headlight.model.analysis.score_attribution import Cell, read_for, score_parts
from headlight.model.analysis.stream_parts import Part
from headlight.model.served import Served
from headlight.model.trace import Token, Trace
from headlight.model.tracing import PassSpec, run_batch, tokenize

TEXT = "Old Miller {} ate {}. Then the moon rose over the hill. Old Miller {} ate"
NAMES = ["Finn", "Hale", "Reed", "Marsh", "Pike", "Boyd", "Cole", "Dale", "Ford", "Gray"]
FOODS = ["cabbage", "turnips", "radishes", "mutton", "herring"]
LEAST_WEIGHT = 0.3
"""Of the token that followed, as a mean over the texts; the strongest other heads have less."""


@dataclass(frozen=True, kw_only=True)
class Induction:
    """An induction head in the text in which it copies most.

    ``weight`` is that of the cell, ``mean`` over all texts. ``feeder`` gives ``share`` of the lead
    of the cell's score, and reads the token before the key with ``previous`` of its weight. The
    token at the key is ``followed``, and follows again with ``probability``.
    """

    trace: Trace
    cell: Cell
    weight: float
    mean: float
    feeder: Part
    share: float
    previous: float
    followed: Token
    probability: float


def induction_in(model: Served) -> Induction:
    """Find the strongest induction head of a decoder, and the head that feeds it.

    Raises:
        ValueError: the model has none, or its scores have no parts.
    """
    paths = [facts.path for facts in model.description.attentions]
    if model.config.kind != "decoder" or not paths:
        raise ValueError(f"{model.id} is no decoder with attention, so it continues no text")
    read = [_read(model, paths, name, food) for name in NAMES for food in FOODS]
    means = {
        (path, head): float(np.mean([trace[f"{path}.rows"][head, 0, key] for trace, key in read]))
        for path in paths
        for head in range(len(read[0][0][f"{path}.rows"]))
    }
    path, head = max(means, key=lambda place: means[place])
    if means[path, head] < LEAST_WEIGHT:
        raise ValueError(
            f"no head of {model.id} reads what followed the last time: the strongest, {head} of "
            f"{path}, gives it {means[path, head]:.0%} of its weight"
        )
    trace, key = max(read, key=lambda each: _probability(*each))
    cell = Cell(path=path, head=head, query=_last(trace), key=key)
    made = score_parts(model, read_for(model, trace, path, cell.query), cell)
    heads = [(share, part) for share, part in zip(made.key_side, made.key_parts, strict=True)]
    share, feeder = max(
        (each for each in heads if each[1].kind == "head"), key=lambda each: each[0]
    )
    spec = PassSpec((f"{feeder.path}.rows",), queries=(key,))
    (before,) = run_batch(model, spec, [tokenize(model, trace.text)])
    return Induction(
        trace=trace,
        cell=cell,
        weight=made.weights[0],
        mean=means[path, head],
        feeder=feeder,
        share=share / made.score,
        previous=float(before[f"{feeder.path}.rows"][feeder.head, 0, key - 1]),
        followed=trace.tokens[key],
        probability=_probability(trace, key),
    )


def _read(model: Served, paths: list[str], name: str, food: str) -> tuple[Trace, int]:
    """Read a text; return the last row of each head, and the token that followed the last time."""
    text = tokenize(model, TEXT.format(name, food, name))
    last = max(at for at, token in enumerate(text.tokens) if not token.is_special)
    spec = PassSpec((*(f"{path}.rows" for path in paths), "logits"), queries=(last,))
    (trace,) = run_batch(model, spec, [text])
    ids = [token.id for token in trace.tokens]

    def n_equal(at: int) -> int:
        return next(n for n in range(at + 2) if n > at or ids[at - n] != ids[last - n])

    return trace, max(range(last), key=n_equal) + 1


def _last(trace: Trace) -> int:
    return trace.queries[0] if trace.queries else 0


def _probability(trace: Trace, key: int) -> float:
    """Return the probability that the token at the key follows again."""
    logits = trace["logits"][_last(trace)].astype(np.float64)
    return float(np.exp(logits[trace.tokens[key].id] - np.logaddexp.reduce(logits)))
