"""Scores of each attention head's behaviour on a text, and a label by the highest score.

Mean weights on named keys (`_targets`), after Voita et al. 2019,
https://arxiv.org/abs/1905.09418 (positional heads), Clark et al. 2019,
https://arxiv.org/abs/1906.04341 (previous, next and special tokens, broad heads) and Olsson et al.
2022, https://arxiv.org/abs/2209.11895 (induction):

- ``previous``, ``next``, ``current``: the weight on the token before, after, or itself.
- ``sink``: on the first token of the text, on the first word (for queries after it) and,
  unless the attention is causal, on the last token if it is a boundary token (special, and spelling
  nothing). In cross-attention on the first and the last token if they are boundary tokens. Never on
  the query itself, and only of queries that see at least twice as many keys. Xiao et al. 2023, https://arxiv.org/abs/2309.17453.
- ``same_token``: on other tokens with the query's id. Wang et al. 2022,
  https://arxiv.org/abs/2211.00593, duplicate token heads.
- ``induction``: on tokens that follow an earlier token with the query's id, except the previous
  token, which has its own score. The prefix matching score of Olsson et al.

The first token and a boundary token count for no other of these scores; the first word does. The
mean is over the queries that see such a key and at least one other.

Measures of how the weights are distributed, defined by this project:

- ``monotonic``, cross-attention: the correlation of the positions of query and key if pairs of
  ordinary tokens are drawn by weight, or 0 if negative; times the mean weight on ordinary tokens.
- ``positional``, self-attention: the share of the variance around uniform weights that the mean by
  distance explains, 1 − (Σ(w − mean)²/(pairs − distances)) / (Σ(w − uniform)²/pairs), or 0 if
  negative.
- ``broad``: the mean over the queries of entropy / ln(number of visible keys), in [0, 1].
- ``narrow``: 1 − broad.

A query that sees only one key is never counted: its weight is always 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headlight.model.analysis.attention_by_distance import distance_index, mean_by_distance
from headlight.model.analysis.layers import Attention, attentions_of, float_array
from headlight.model.distributions import entropy
from headlight.model.trace import NamedArray, Token, Trace

# A head's label is the greatest score that reaches its threshold, in the first group that has one.
# A previous-token head is also positional and narrow, which says less; an induction head without
# anything to copy attends to a sink. 0.5 is the majority of the weight. Broad comes before
# positional: the small variation of nearly uniform weights may well depend on distance.
GROUPS: tuple[Mapping[str, float], ...] = (
    {
        "previous": 0.5,
        "next": 0.5,
        "current": 0.5,
        "same_token": 0.5,
        "induction": 0.5,
        "monotonic": 0.5,
    },
    {"sink": 0.5},
    {"broad": 0.9},
    {"positional": 0.5},
    {"narrow": 0.75},
)
SCORES = tuple(label for group in GROUPS for label in group)
LABELS = (*SCORES, "mixed")
MIN_QUERIES = 3  # one chance repetition in a text does not make an induction head


class Score(NamedTuple):
    """One score per head, in [0, 1], and the number of queries that it is a mean over."""

    values: Float[np.ndarray, " head"]
    n_queries: Int[np.ndarray, ""]


class TokenFacts(NamedTuple):
    """The facts of the tokens of one text that scores read, as arrays: a graph has no objects."""

    ids: Int[np.ndarray, " token"]
    is_typed: Bool[np.ndarray, " token"]
    is_special: Bool[np.ndarray, " token"]
    is_first_word: Bool[np.ndarray, " token"]


def head_labels(trace: Trace) -> dict[str, NamedArray]:
    """Score and label every head of every attention that the trace holds.

    Args:
        trace: with attention weights, and the tokens of the texts.

    Returns:
        By attention, for ``decoder.layers.0.self_attention`` for instance:

        - ``….label`` (head), int32: an index into `LABELS`; the last, ``mixed``, if no score over
          at least `MIN_QUERIES` queries reaches its threshold in `GROUPS`.
        - ``….label_scores`` (head, label), float32 in [0, 1], the labels being `SCORES`; 0 for an
          undefined score.
        - ``….label_queries`` (label), int32: the number of queries that each score is a mean over.
          0: undefined for this attention (``next`` in a causal one) or this text (``induction``
          without repetition).

    Raises:
        KeyError: the trace has no attention weights.
        ValueError: it has no target for a cross-attention, or the numbers of tokens and weights
            differ.
    """
    arrays: dict[str, NamedArray] = {}
    for attention in attentions_of(trace):
        queries, keys = map(token_facts, attention.tokens(trace))
        arrays |= label_heads(attention, queries, keys)
    return arrays


def token_facts(tokens: Sequence[Token]) -> TokenFacts:
    """Return the facts of tokens."""
    first = next((token.word for token in tokens if token.word is not None), None)
    return TokenFacts(
        np.array([token.id for token in tokens]),
        np.array([token.is_typed for token in tokens]),
        np.array([token.is_special for token in tokens]),
        np.array([token.word is not None and token.word == first for token in tokens]),
    )


def label_heads(
    attention: Attention, queries: TokenFacts, keys: TokenFacts
) -> dict[str, NamedArray]:
    """Return the arrays of `head_labels` of one attention."""
    scores = score_heads(attention, queries, keys)
    values = np.stack([scores[label].values for label in SCORES], axis=1)
    counts = np.stack([scores[label].n_queries for label in SCORES]).astype(np.int32)
    labels = _label(values * (counts >= MIN_QUERIES)).astype(np.int32)
    return {
        f"{attention.path}.label": NamedArray(("head",), labels),
        f"{attention.path}.label_scores": float_array(values, "head", "label"),
        f"{attention.path}.label_queries": NamedArray(("label",), counts),
    }


def score_heads(attention: Attention, queries: TokenFacts, keys: TokenFacts) -> dict[str, Score]:
    """Compute every score of `SCORES` for the heads of one attention; see the module."""
    weights, visible = attention.weights, attention.visible
    named = _targets(attention, queries.ids.shape[0], keys)
    resting = named["sink"] & visible
    is_few = 2 * resting.sum(axis=1, keepdims=True) <= visible.sum(axis=1, keepdims=True)
    named["sink"] = resting & is_few
    scores = {label: _on(targets & visible, weights, visible) for label, targets in named.items()}
    scores["broad"] = broad = _broad(weights, visible)
    scores["narrow"] = Score((1 - broad.values) * (broad.n_queries > 0), broad.n_queries)
    if attention.is_cross:
        is_query, is_key = (torch.from_numpy(~each.is_special) for each in (queries, keys))
        (values,) = monotonic(torch.from_numpy(weights)[None], is_query[None], is_key[None])
        is_enough = torch.minimum(is_query.sum(), is_key.sum()) >= 2
        scores["monotonic"] = Score(values.numpy(), (is_query.sum() * is_enough).numpy())
    else:
        scores["positional"] = _positional(weights, visible)
    undefined = Score(np.zeros(len(weights)), np.zeros((), dtype=np.int64))
    return {label: scores.get(label, undefined) for label in SCORES}


def _targets(
    attention: Attention, n_queries: int, keys: TokenFacts
) -> dict[str, Bool[np.ndarray, "query key"]]:
    """Return the (query, key) pairs whose weights each score adds up."""
    query, key = np.arange(n_queries)[:, None], np.arange(keys.ids.shape[0])
    is_sink = _sinks(attention, keys)
    if attention.is_cross:
        return {"sink": is_sink & (query >= 0)}
    is_same = keys.ids[:, None] == keys.ids
    follows_same = np.concatenate([is_same[:, :1] & False, is_same[:, :-1]], axis=1)
    named = {
        "previous": key == query - 1,
        "current": key == query,
        "same_token": is_same & (key != query),
        "induction": follows_same & (key < query - 1),
    }
    if not attention.is_causal:
        named["next"] = key == query + 1
    is_first_word = keys.is_first_word
    rests = is_sink | (is_first_word & ~is_first_word[:, None] & (key < query))
    return {label: targets & ~is_sink for label, targets in named.items()} | {
        "sink": rests & (key != query)
    }


def _sinks(attention: Attention, keys: TokenFacts) -> Bool[np.ndarray, " key"]:
    key, is_added = np.arange(keys.ids.shape[0]), ~keys.is_typed
    is_first: Bool[np.ndarray, " key"] = key == 0
    if attention.is_cross:
        is_first = is_first & is_added
    if attention.is_causal:
        return is_first
    is_last: Bool[np.ndarray, " key"] = (key == key.max(0)) & is_added
    sinks: Bool[np.ndarray, " key"] = is_first | is_last
    return sinks


def _on(
    targets: Bool[np.ndarray, "query key"],
    weights: Float[np.ndarray, "head query key"],
    visible: Bool[np.ndarray, "query key"],
) -> Score:
    """Return the mean weight on the targets, over queries that see other keys too."""
    counted = targets.any(axis=1) & (visible & ~targets).any(axis=1)
    return _mean((weights * targets).sum(axis=-1), counted)


def _mean(rows: Float[np.ndarray, "head query"], counted: Bool[np.ndarray, " query"]) -> Score:
    """Return the mean over the counted queries; 0 if there is none."""
    n_queries = counted.sum()
    return Score((rows * counted).sum(axis=1) / np.maximum(n_queries, 1), n_queries)


def _broad(
    weights: Float[np.ndarray, "head query key"], visible: Bool[np.ndarray, "query key"]
) -> Score:
    n_visible = visible.sum(axis=1)
    spread = entropy(weights, "nats") / np.log(np.maximum(n_visible, 2))
    score = _mean(spread, n_visible > 1)
    return Score(np.clip(score.values, 0, 1), score.n_queries)


def _positional(
    weights: Float[np.ndarray, "head query key"], visible: Bool[np.ndarray, "query key"]
) -> Score:
    n_visible = visible.sum(axis=1, keepdims=True)
    counted = visible & (n_visible > 1)
    distance = distance_index(*visible.shape)
    n_pairs = counted.sum()
    n_distances = (mean_by_distance(counted[None] * 1.0, counted) > 0).sum()
    by_distance = mean_by_distance(weights, counted)[:, distance]
    unexplained = (np.square(weights - by_distance) * counted).sum(axis=(1, 2))
    varied = (np.square(weights - 1 / n_visible) * counted).sum(axis=(1, 2))
    is_enough = n_pairs > n_distances
    n_queries = counted.any(axis=1).sum() * is_enough
    # Weights that differ from uniform only by rounding have no variance to explain.
    has_variance = is_enough & (varied > n_queries * 1e-6)
    freedom = n_pairs / np.maximum(n_pairs - n_distances, 1)
    ratio = unexplained / np.where(has_variance, varied, 1.0) * freedom
    values = np.where(has_variance, 1 - ratio, 0.0)
    return Score(np.clip(values, 0, 1), n_queries)


def monotonic(
    weights: Float[Tensor, "row head query key"],
    is_query: Bool[Tensor, "row query"],
    is_key: Bool[Tensor, "row key"],
) -> Float[Tensor, "row head"]:
    """Return the score ``monotonic`` of the heads in each row of a batch, from the moments.

    Args:
        weights: of cross-attention, in float64.
        is_query: whether a query is an ordinary token, and no padding.
        is_key: whether a key is.
    """
    kept = weights * is_query[:, None, :, None] * is_key[:, None, None, :]
    at_query = (is_query.cumsum(dim=1) - 1).double()
    at_key = (is_key.cumsum(dim=1) - 1).double()
    by_query, by_key = kept.sum(dim=3), kept.sum(dim=2)
    total = by_query.sum(dim=2)
    safe = torch.where(total > 0, total, 1.0)

    def mean(values: Tensor) -> Tensor:
        return values.sum(dim=2) / safe

    row = at_query[:, None] - mean(by_query * at_query[:, None])[:, :, None]
    column = at_key[:, None] - mean(by_key * at_key[:, None])[:, :, None]
    covariance = torch.einsum("bhq,bhqk,bhk->bh", row, kept, column) / safe
    variances = mean(by_query * row**2) * mean(by_key * column**2)
    defined = (total > 0) & (variances > 1e-12)
    correlation = torch.where(defined, covariance / variances.clamp(min=1e-12).sqrt(), 0.0)
    n_queries, n_keys = is_query.sum(dim=1), is_key.sum(dim=1)
    values = correlation * total / n_queries.clamp(min=1)[:, None]
    enough = (torch.minimum(n_queries, n_keys) >= 2)[:, None]
    return torch.where(enough, values, 0.0).clamp(0, 1)


def _label(scores: Float[np.ndarray, "head label"]) -> Int[np.ndarray, " head"]:
    """Return the index of the greatest score that reaches its threshold, in the first group."""
    labels = np.zeros(len(scores), dtype=np.int64) + LABELS.index("mixed")
    for group in reversed(GROUPS):
        first = SCORES.index(next(iter(group)))
        some = scores[:, first : first + len(group)]
        is_reached = np.stack(
            [some[:, at] >= least for at, least in enumerate(group.values())], axis=1
        )
        best = np.where(is_reached, some, -1.0).argmax(axis=1) + first
        labels = np.where(is_reached.any(axis=1), best, labels)
    return labels
