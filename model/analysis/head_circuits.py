"""The QK and OV circuits of each head: the tokens that it looks for, and those that it writes.

Both come only from the weights and the token embeddings, without positions and without what
earlier layers add. x is the embedding of a token after the norm that precedes the attention (the
keys and values of cross-attention are read after the encoder's final norm):

    written(source, token) = x(source)·W_V·W_O·γ·W_Uᵀ / σ                         in logits
    sought(query, key)     = scale · (x(query)·W_Q + b_Q)·(x(key)·W_K + b_K)      before the softmax

γ and σ are those of the final norm, σ frozen at the last position of the text; LayerNorm centres
each row of γ·W_U. Elhage et al. 2021, https://transformer-circuits.pub/2021/framework/index.html,
"Splitting attention head terms into circuits"; they have no norms. In layers after the first this
is a first approximation, because heads read a stream to which other parts have written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from headlight.model.analysis.layers import layers_of, tokens_of
from headlight.model.analysis.logit_attribution import ExitOf
from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.served import Weight
from headlight.model.trace import AttentionFacts, NamedArray, Trace

MAX_PRODUCTS = 2**27
"""The most scores and logits of an analysis, heads × tokens × vocabulary: a few seconds."""

Vectors = Float[np.ndarray, "token d_model"]


@dataclass(frozen=True)
class HeadCircuits:
    """The arrays by attention, and the reason why one has no OV circuit."""

    arrays: dict[str, NamedArray]
    omitted: dict[str, str] = field(default_factory=dict)


class _Top(NamedTuple):
    ids: Int[np.ndarray, "token rank"]
    values: Float[np.ndarray, "token rank"]


def head_circuits(
    trace: Trace,
    weights: Mapping[str, Weight],
    exit_of: ExitOf,
    config: TransformerConfig,
    top: int = 10,
) -> HeadCircuits:
    """Return the strongest tokens of both circuits, by captured head and token of the text.

    Args:
        trace: with the streams after layers and the weights of attention; its tokens are the
            sources and the queries.
        weights: of the model, with the norms of its attentions.
        exit_of: as `Served.linear_exit`.
        config: of the model; its norms are before the attentions.
        top: how many tokens of the vocabulary are returned.

    Returns:
        By attention, ``decoder.layers.0.self_attention``:

        - ``.written_ids`` and ``.written_logits`` (head, key, rank): the tokens whose logits the
          head raises most if it attends to that token.
        - ``.sought_ids`` and ``.sought_scores`` (head, query, rank): the tokens that get the
          highest scores from that query.
        - ``.copying`` (head): Σλ/Σ|λ| over the eigenvalues of the OV circuit, from -1 to 1; 1 if
          the head raises the logit of what it attends to, whatever it is.

    Raises:
        KeyError: the trace lacks a site, or a weight is missing.
        ValueError: the norms are elsewhere, or there are too many heads and tokens.
    """
    after = layers_of(trace, "residual.after")
    *_, stack = after
    last = after[stack][max(after[stack])][-1].astype(np.float64)
    exits = exit_of(stack, last, list(range(config.vocab_size))).directions
    reader = _Reader(weights, config)
    result = HeadCircuits({})
    for facts in _attentions(trace):
        check()
        circuits = _Circuits(facts, trace, reader)
        circuits.require_fewer_than(MAX_PRODUCTS)
        result.arrays.update(_ranked(f"{facts.path}.sought", "scores", circuits.sought(top)))
        if facts.path.split(".")[0] != stack:
            result.omitted[f"{facts.path}.written"] = (
                "it writes to the encoder, whose stream is not unembedded"
            )
            continue
        result.arrays.update(
            _ranked(f"{facts.path}.written", "logits", circuits.written(exits, top))
        )
        result.arrays[f"{facts.path}.copying"] = NamedArray(("head",), circuits.copying(exits))
    return result


def _attentions(trace: Trace) -> Iterator[AttentionFacts]:
    for path, facts in trace.attentions.items():
        if f"{path}.weights" in trace:
            yield facts


def _ranked(name: str, unit: str, heads: list[_Top]) -> dict[str, NamedArray]:
    axes = ("head", "key" if unit == "logits" else "query", "rank")
    return {
        f"{name}_ids": NamedArray(axes, np.stack([head.ids for head in heads]).astype(np.int32)),
        f"{name}_{unit}": NamedArray(
            axes, np.stack([head.values for head in heads]).astype(np.float32)
        ),
    }


class _Reader:
    """The normalised embeddings of the whole vocabulary, as each norm of a model makes them."""

    def __init__(self, weights: Mapping[str, Weight], config: TransformerConfig) -> None:
        self.weights, self.config = weights, config
        self.n_tokens = config.vocab_size

    def weight(self, name: str) -> Float[np.ndarray, "*axes"]:
        if name not in self.weights:
            raise KeyError(f"the weights lack {name}")
        return self.weights[name].read().astype(np.float64)

    def bias(self, name: str) -> Float[np.ndarray, "*axes"] | float:
        return self.weight(name)[..., None, :] if name in self.weights else 0.0

    def vocabulary(self, stack: str, norm: str) -> Vectors:
        """Return the normalised embedding of every token."""
        x = self.weight(f"{stack}.embedding.W_E")
        if self.config.scales_embedding:
            x = x * np.sqrt(x.shape[-1])
        if self.config.norm == "layer_norm":
            x = x - x.mean(axis=-1, keepdims=True)
        size = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + self.config.norm_epsilon)
        shift = f"{norm}.norm_shift"
        vectors: np.ndarray = x / size * self.weight(f"{norm}.norm_scale")
        return vectors + self.weight(shift) if shift in self.weights else vectors


class _Circuits:
    """Both circuits of the captured heads of one attention."""

    def __init__(self, facts: AttentionFacts, trace: Trace, reader: _Reader) -> None:
        self.facts, self.reader = facts, reader
        stack, _, _, kind = facts.path.split(".")
        is_cross = kind == "cross_attention"
        self.heads = list(range(facts.n_heads) if trace.heads is None else trace.heads)
        self.readers = reader.vocabulary(stack, facts.path)
        self.read = reader.vocabulary("encoder", "encoder") if is_cross else self.readers
        self.queries = _ids(trace, stack)
        self.keys = _ids(trace, "encoder") if is_cross else self.queries

    def require_fewer_than(self, most: int) -> None:
        n_tokens = max(len(self.queries), len(self.keys))
        actual = len(self.heads) * n_tokens * self.reader.n_tokens
        if actual > most:
            raise ValueError(
                f"the circuits of an attention have {actual:,} numbers, more than the {most:,} "
                "that are allowed; ask for fewer heads, or send a shorter text"
            )

    def sought(self, top: int) -> list[_Top]:
        w_q, b_q = self._by_head("Q"), self.reader.bias(f"{self.facts.path}.b_Q")
        w_k, b_k = self._by_head("K"), self.reader.bias(f"{self.facts.path}.b_K")
        unique, places = np.unique(self.queries, return_inverse=True)
        ranked = []
        for index, head in enumerate(self.heads):
            queries = self.readers[unique] @ w_q[index] + _of_head(b_q, head)
            keys = self.read @ w_k[index] + _of_head(b_k, head)
            ranked.append(_top(self.facts.scale * queries @ keys.T, top, places))
        return ranked

    def written(self, exits: Vectors, top: int) -> list[_Top]:
        w_v, w_o = self._by_head("V"), self._by_head("O")
        unique, places = np.unique(self.keys, return_inverse=True)
        return [
            _top(self.read[unique] @ w_v[index] @ (w_o[index] @ exits.T), top, places)
            for index in range(len(self.heads))
        ]

    def copying(self, exits: Vectors) -> Float[np.ndarray, " head"]:
        """Return Σλ/Σ|λ| of each head's OV circuit x·W_V·W_O·Uᵀ.

        Its eigenvalues λ other than 0 are those of W_O·Uᵀ·x·W_V, a matrix of d_head by d_head.
        """
        w_v, w_o = self._by_head("V"), self._by_head("O")
        through = exits.T @ self.read
        ratios = np.zeros(len(self.heads), np.float32)
        for index in range(len(self.heads)):
            values = np.linalg.eigvals(w_o[index] @ through @ w_v[index])
            ratios[index] = values.sum().real / max(float(np.abs(values).sum()), 1e-12)
        return ratios

    def _by_head(self, letter: str) -> Float[np.ndarray, "head rows columns"]:
        return self.reader.weight(f"{self.facts.path}.W_{letter}")[self.heads]


def _of_head(
    bias: Float[np.ndarray, "*axes"] | float, head: int
) -> Float[np.ndarray, "*axes"] | float:
    return bias if isinstance(bias, float) else bias[head]


def _ids(trace: Trace, stack: str) -> Int[np.ndarray, " token"]:
    return np.array([token.id for token in tokens_of(trace, stack)])


def _top(
    scores: Float[np.ndarray, "token vocab"], top: int, places: Int[np.ndarray, " position"]
) -> _Top:
    """Return the highest of each row, for each position."""
    count = min(top, scores.shape[1])
    ids = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    return _Top(ids[places], np.take_along_axis(scores, ids, axis=-1)[places])
