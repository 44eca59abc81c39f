"""The QK and OV circuits of each head: the tokens that it looks for, and those that it writes.

Both come only from the weights and the token embeddings, without positions and without what
earlier layers add. x is the embedding of a token after the norm that precedes the attention (the
keys and values of cross-attention are read after the encoder's final norm); a norm of queries and
keys by head is applied, a rotation is not:

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
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.model.analysis.layers import layers_of, tokens_of
from headlight.model.analysis.logit_attribution import ExitOf
from headlight.model.cancellation import check
from headlight.model.config import Architecture
from headlight.model.served import Weight
from headlight.model.trace import AttentionFacts, NamedArray, Trace
from headlight.model.weights import InputMatrix, NormParts, Weights

MAX_EMBEDDING = 2**28
"""The most numbers of the embeddings of a vocabulary: two gigabytes in float64."""
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
    weights: Weights,
    embeddings: Mapping[str, Vectors],
    exit_of: ExitOf,
    config: Architecture,
    top: int = 10,
) -> HeadCircuits:
    """Return the strongest tokens of both circuits, by captured head and token of the text.

    Args:
        trace: with the streams after layers and the weights of attention; its tokens are the
            sources and the queries.
        weights: of the graph of the model.
        embeddings: of every token, as they enter the stream, by stack (vocab, d_model).
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
    reader = _Reader(weights, embeddings, exits)
    result = HeadCircuits({})
    for facts in _attentions(trace):
        check()
        circuits = _Circuits(facts, trace, reader)
        circuits.require_fewer_than(MAX_PRODUCTS)
        result.arrays.update(_ranked(f"{facts.path}.sought", "scores", circuits.sought(top)))
        if reason := circuits.unwritten(stack):
            result.omitted[f"{facts.path}.written"] = reason
            continue
        result.arrays.update(_ranked(f"{facts.path}.written", "logits", circuits.written(top)))
        result.arrays[f"{facts.path}.copying"] = NamedArray(("head",), circuits.copying())
    return result


def token_embeddings(weights: Mapping[str, Weight], config: Architecture) -> dict[str, Vectors]:
    """Return the embedding of every token as it enters the stream, by stack (vocab, d_model).

    Raises:
        ValueError: there are too many numbers.
    """
    n_numbers = config.vocab_size * config.d_model
    if n_numbers > MAX_EMBEDDING:
        raise ValueError(
            f"the embeddings have {n_numbers:,} numbers, more than the {MAX_EMBEDDING:,} that are "
            "multiplied; take a smaller model"
        )
    factor = config.d_model**0.5 if getattr(config, "scales_embedding", False) else 1.0
    return {
        name.partition(".")[0]: factor * weight.read()
        for name, weight in weights.items()
        if name.endswith(".embedding.W_E")
    }


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
    """The normalised embeddings of the whole vocabulary, before the scale of a norm."""

    def __init__(self, weights: Weights, embeddings: Mapping[str, Vectors], exits: Vectors) -> None:
        self.weights, self.embeddings, self.exits = weights, embeddings, exits
        self.n_tokens = len(exits)
        self._normal: dict[tuple[str, float, bool], tuple[Vectors, Vectors]] = {}

    def vocabulary(self, stack: str, site: str) -> _Vocabulary:
        """Return the embeddings of a stack behind a norm.

        Raises:
            KeyError: the norm is not one vector.
        """
        norm = self.weights.norm(site)
        if norm is None:
            raise KeyError(f"{site} is neither LayerNorm nor RMSNorm")
        key = stack, norm.epsilon, norm.is_centred
        if key not in self._normal:
            centred, size = norm.split(torch.from_numpy(self.embeddings[stack]).double())
            normal = (centred / size).numpy()
            self._normal[key] = normal, self.exits.T @ normal
        return _Vocabulary(*self._normal[key], norm, self.exits.sum(axis=0))

    def matrix(self, site: str) -> InputMatrix:
        matrix = self.weights.inputs(site)
        if matrix is None:
            raise KeyError(f"{site} is not a matrix times the norm of the stream")
        return matrix


class _Vocabulary(NamedTuple):
    """Normalised embeddings n, Uᵀ·n, the norm whose scale and shift are still to come, and ΣU.

    The two products with the whole vocabulary are made once for all attentions.
    """

    normal: Vectors
    through: Float[np.ndarray, "d_model d_model"]
    norm: NormParts
    total: Float[np.ndarray, " d_model"]

    def times(
        self, weight: Float[np.ndarray, "d_model columns"], ids: Int[np.ndarray, " token"] | None
    ) -> Float[np.ndarray, "token columns"]:
        """Return x·W of some tokens, or of all."""
        rows = self.normal if ids is None else self.normal[ids]
        made: np.ndarray = rows @ (_array(self.norm.scale)[:, None] * weight)
        return made if self.norm.shift is None else made + _array(self.norm.shift) @ weight

    def exits_times(
        self, weight: Float[np.ndarray, "d_model columns"]
    ) -> Float[np.ndarray, "d_model columns"]:
        """Return Uᵀ·x·W over the whole vocabulary."""
        made: np.ndarray = self.through @ (_array(self.norm.scale)[:, None] * weight)
        if self.norm.shift is None:
            return made
        return made + np.outer(self.total, _array(self.norm.shift) @ weight)


class _Circuits:
    """Both circuits of the captured heads of one attention."""

    def __init__(self, facts: AttentionFacts, trace: Trace, reader: _Reader) -> None:
        self.facts, self.reader = facts, reader
        self.stack, _, _, kind = facts.path.split(".")
        is_cross = kind == "cross_attention"
        self.heads = list(range(facts.n_heads) if trace.heads is None else trace.heads)
        layer = facts.path.rpartition(".")[0]
        self.readers = reader.vocabulary(self.stack, f"{layer}.{kind.removeprefix('self_')}_norm")
        self.read = reader.vocabulary("encoder", "encoder.norm") if is_cross else self.readers
        self.queries = _ids(trace, self.stack)
        self.keys = _ids(trace, "encoder") if is_cross else self.queries
        self.has_gain = f"{facts.path}.gain" in trace

    def require_fewer_than(self, most: int) -> None:
        n_tokens = max(len(self.queries), len(self.keys))
        actual = len(self.heads) * n_tokens * self.reader.n_tokens
        if actual > most:
            raise ValueError(
                f"the circuits of an attention have {actual:,} numbers, more than the {most:,} "
                "that are allowed; ask for fewer heads, or send a shorter text"
            )

    def unwritten(self, stack: str) -> str:
        """Return the reason why its heads write no logits; empty: they do."""
        if self.stack != stack:
            return "it writes to the encoder, whose stream is not unembedded"
        if self.has_gain:
            return "a norm follows its heads, so what they write depends on the text"
        if self.reader.weights.outputs(self.facts.path) is None:
            return "no matrix leads from its heads to the stream"
        return ""

    def sought(self, top: int) -> list[_Top]:
        queries, keys = (self.reader.matrix(f"{self.facts.path}.{n}") for n in ("queries", "keys"))
        unique, places = np.unique(self.queries, return_inverse=True)
        ranked = []
        known: tuple[int, np.ndarray] | None = None  # heads that share keys follow each other
        for head in self.heads:
            group = head * (self.facts.n_groups or self.facts.n_heads) // self.facts.n_heads
            if known is None or known[0] != group:
                known = group, _made(keys, head, self.read, None)
            scale = self.facts.scale or 1.0
            scores = scale * _made(queries, head, self.readers, unique) @ known[1].T
            ranked.append(_top(scores, top, places))
        return ranked

    def written(self, top: int) -> list[_Top]:
        unique, places = np.unique(self.keys, return_inverse=True)
        return [
            _top(self.read.times(w_v, unique) @ w_o @ self.reader.exits.T, top, places)
            for w_v, w_o in self._values()
        ]

    def copying(self) -> Float[np.ndarray, " head"]:
        """Return Σλ/Σ|λ| of each head's OV circuit x·W_V·W_O·Uᵀ.

        Its eigenvalues λ other than 0 are those of W_O·Uᵀ·x·W_V, a matrix of d_head by d_head.
        """
        ratios = np.zeros(len(self.heads), np.float32)
        for index, (w_v, w_o) in enumerate(self._values()):
            values = np.linalg.eigvals(w_o @ self.read.exits_times(w_v))
            ratios[index] = values.sum().real / max(float(np.abs(values).sum()), 1e-12)
        return ratios

    def _values(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield W_V and W_O of each head."""
        values = self.reader.matrix(f"{self.facts.path}.values").weight
        outputs = self.reader.weights.outputs(self.facts.path)
        assert outputs is not None
        for head in self.heads:
            yield _array(values[head]), _array(outputs[head])


def _made(
    matrix: InputMatrix, head: int, vocabulary: _Vocabulary, ids: Int[np.ndarray, " token"] | None
) -> Float[np.ndarray, "token d_head"]:
    """Return the queries or keys of a head for some tokens or all, behind their norm."""
    made = vocabulary.times(_array(matrix.weight[head]), ids)
    if matrix.bias is not None:
        made = made + _array(matrix.bias[head])
    if matrix.norm is not None:
        centred, size = matrix.norm.split(torch.from_numpy(made))
        made = (centred / size).numpy() * _array(matrix.norm.scale[head])
    return made


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().cpu().numpy()


def _ids(trace: Trace, stack: str) -> Int[np.ndarray, " token"]:
    return np.array([token.id for token in tokens_of(trace, stack)])


def _top(
    scores: Float[np.ndarray, "token vocab"], top: int, places: Int[np.ndarray, " position"]
) -> _Top:
    """Return the highest of each row, for each position; of equal ones the first."""
    count = min(top, scores.shape[1])
    least = np.partition(scores, -count, axis=-1)[:, -count, None]
    ids = np.argsort(np.where(scores >= least, -scores, np.inf), kind="stable")[:, :count]
    return _Top(ids[places], np.take_along_axis(scores, ids, axis=-1)[places])
