"""The whole matrix of each kind of attention in float64, to compare blocks with."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from headlight.model.attention.observer import bin_width
from headlight.model.attention.scores import ScoreTerms
from headlight.model.positions import alibi_slopes

KINDS = (
    "two-way",
    "causal",
    "window",
    "two-way window",
    "chunks",
    "alibi",
    "relative bias",
    "softcap",
    "sinks",
    "grouped",
    "multi-query",
    "padding",
    "cross",
    "mask",
)


@dataclass
class Case:
    """Inputs of one kind, the terms of the scores in blocks, and the scores whole."""

    queries: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    terms: ScoreTerms
    scores: torch.Tensor  # float64, without a sink, −∞ where masked


def case(kind, n, *, n_heads=4, d_head=16, n_rows=2, seed=0, spread=2):
    """Random inputs of a kind, `n` tokens long, with scores of a standard deviation of `spread`."""
    generator = torch.Generator().manual_seed(seed)
    n_groups = {"grouped": 2, "multi-query": 1}.get(kind, n_heads)
    n_keys = n * 3 // 4 + 1 if kind == "cross" else n
    queries = spread * torch.randn(n_rows, n_heads, n, d_head, generator=generator)
    keys = torch.randn(n_rows, n_groups, n_keys, d_head, generator=generator)
    values = torch.randn(n_rows, n_groups, n_keys, d_head, generator=generator)
    is_causal = kind not in ("two-way", "two-way window", "relative bias", "padding", "cross")
    options, scale = {}, d_head**-0.5
    sharers = n_heads // n_groups
    whole = queries.double() @ keys.double().repeat_interleave(sharers, 1).mT * scale
    rows, columns = torch.arange(n)[:, None], torch.arange(n_keys)
    visible = rows >= columns if is_causal else torch.ones(n, n_keys, dtype=torch.bool)
    if kind == "softcap":
        whole, options["softcap"] = 3 * torch.tanh(whole / 3), 3.0
    if kind == "alibi":
        options["slopes"] = alibi_slopes(n_heads)
        whole = whole - options["slopes"].double()[:, None, None] * (rows - columns).abs()
    if kind == "relative bias":
        table = torch.randn(n_heads, 2 * n, generator=generator)
        whole = whole + table.double()[:, rows - columns + n]
        options["bias"] = lambda heads, at, to: table[
            heads, torch.arange(*at)[:, None] - torch.arange(*to) + n
        ]
    if "window" in kind:
        options["window"] = max(2, n // 5)
        visible = visible & ((rows - columns).abs() < options["window"])
    if kind == "chunks":
        options["chunk"] = max(2, n // 5)
        visible = visible & (rows // options["chunk"] == columns // options["chunk"])
    if kind == "sinks":
        options["sinks"] = torch.randn(n_heads, generator=generator) + 1
    if kind == "padding":
        options["is_token"] = (
            torch.arange(n_keys) < torch.tensor([n_keys, n_keys * 2 // 3])[:, None]
        )
        visible = visible & options["is_token"][:, None, None]
    if kind == "mask":  # some rows see nothing
        drawn = torch.rand(n, n_keys, generator=generator) < 0.5
        drawn[n // 2] = False
        options["visible"] = lambda _, at, to: drawn[slice(*at), slice(*to)]
        visible = visible & drawn
    terms = ScoreTerms(scale=scale, is_causal=is_causal, **options)
    return Case(queries, keys, values, terms, whole.masked_fill(~visible, -torch.inf))


def whole_weights(one):
    """Return the weights (batch, head, query, key) and, if there is a sink, its weight."""
    scores = one.scores
    if one.terms.sinks is None:
        return scores.softmax(-1).nan_to_num(0), None
    sinks = one.terms.sinks.double()[:, None, None].expand(*scores.shape[:-1], 1)
    weights = torch.cat([scores, sinks], -1).softmax(-1)
    return weights[..., :-1], weights[..., -1]


def observed(one, queries, resolution):
    """All that a pass observes of a case, from the whole matrix."""
    weights, sink = whole_weights(one)
    n, n_keys = weights.shape[-2:]
    rows, columns = torch.arange(n)[:, None], torch.arange(n_keys)
    entropy = torch.special.entr(weights).sum(-1)
    parts = one.scores
    if sink is not None:
        entropy = entropy + torch.special.entr(sink)
        parts = torch.cat(
            [parts, one.terms.sinks.double()[:, None, None].expand(*sink.shape, 1)], -1
        )
    height, width = bin_width(n, resolution), bin_width(n_keys, resolution)
    filled = F.pad(weights, (0, -n_keys % width, 0, -n % height))
    bins = filled.unflatten(-1, (-1, width)).unflatten(-3, (-1, height))
    cells = F.pad(torch.ones(n, n_keys, dtype=torch.float64), (0, -n_keys % width, 0, -n % height))
    cells = cells.unflatten(-1, (-1, width)).unflatten(-3, (-1, height)).sum((-3, -1))
    return {
        "entropy": entropy,
        "first_token": weights[..., 0],
        "mean_distance": (weights * (rows - columns).abs()).sum(-1),
        "logsumexp": parts.logsumexp(-1).clamp(min=-1e30),
        "mean_map": bins.sum((-3, -1)) / cells,
        "max_map": bins.amax((-3, -1)),
        "rows": weights[..., list(queries), :],
    }


def context(one):
    """Return the average of the values, by the whole weights."""
    sharers = one.queries.shape[1] // one.values.shape[1]
    return whole_weights(one)[0] @ one.values.double().repeat_interleave(sharers, 1)


BOUNDS = {
    "entropy": 1e-5,
    "first_token": 1e-6,
    "mean_distance": 1e-2,
    "logsumexp": 1e-5,
    "mean_map": 1e-7,
    "max_map": 1e-7,
    "rows": 1e-7,
}
"""The greatest differences at 2,048 tokens."""
