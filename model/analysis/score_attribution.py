"""Score attribution: which parts of the stream make a query look at a key, and not at another.

    s(i, j) = Σₐ Σ_b  q_a(i) · R(i−j) k_b(j) · scale        a, b over the parts of the stream

is exact once the scales of the norms are held at their values of this pass. A softmax moves only
with differences, so the numbers are those of a contrast, with a rival key or with the mean of the
visible keys:

    s(i, j) − s(i, k) = log(w_ij / w_ik)      s(i, j) − mean_k s(i, k) = log w_ij − mean_k log w_ik

The bilinear form by parts is that of Elhage et al. 2021,
https://transformer-circuits.pub/2021/framework/index.html. A share is no cause: a cut tells what
changes without a part (`circuits.cut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headlight.model.analysis.layers import visible_keys
from headlight.model.analysis.stream_parts import Part, StreamReader, frozen, is_same
from headlight.model.attention.terms import Terms
from headlight.model.interventions.intervention import Intervention
from headlight.model.served import Served
from headlight.model.sites import layer_of
from headlight.model.trace import AttentionFacts, Trace
from headlight.model.tracing import ModelInput, PassSpec, count_elements, run_batch
from headlight.model.weights import InputMatrix, NormParts

MAX_NUMBERS = 2**28
"""The most numbers that the pass of an attribution keeps: 1 GB."""
LEAST_WEIGHT = 1e-37
"""The logarithm of a smaller weight is not exact."""
LARGE_REMAINDER = 1e-3
_LETTERS = {"queries": "Q", "keys": "K"}
ONE = torch.ones(1, dtype=torch.float64)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell of an attention: a head, a query, a key, and the key that it is compared with.

    ``rival`` None: the mean of the visible keys.
    """

    path: str
    head: int
    query: int
    key: int
    rival: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreParts:
    """A score difference by parts, in units of the score.

    ``table`` (query part, key part) sums to ``score`` without ``remainder``; its rows sum to
    ``query_side``, its columns to ``key_side``. A bias of the distance is the last part of both.
    With a softcap, ``score`` is the difference before it. ``weights`` are those of the key and of
    the rival, or the mean.
    """

    query_parts: tuple[Part, ...]
    key_parts: tuple[Part, ...]
    table: Float[np.ndarray, "query_part key_part"]
    score: float
    remainder: float
    weights: tuple[float, float]
    n_visible: int
    sides: tuple[Side, Side]

    @property
    def query_side(self) -> Float[np.ndarray, " query_part"]:
        """The share of each part of the query, with the whole keys."""
        sums: Float[np.ndarray, " query_part"] = self.table.sum(axis=1)
        return sums

    @property
    def key_side(self) -> Float[np.ndarray, " key_part"]:
        """The share of each part of the keys, with the whole query."""
        sums: Float[np.ndarray, " key_part"] = self.table.sum(axis=0)
        return sums


def read_for(
    model: Served, trace: Trace, path: str, query: int, interventions: Sequence[Intervention] = ()
) -> Trace:
    """Read the text of a trace again, and keep all that the parts of a cell are made of.

    Args:
        model: the model.
        trace: of the text.
        path: of the attention.
        query: whose row of weights is kept; the others are not in memory.
        interventions: of the pass.

    Raises:
        ValueError: the text is too long.
    """
    facts = facts_of(model, path)
    stack, _, layer, _ = path.split(".")
    spec = PassSpec(sites_for(model, facts), None, tuple(interventions), queries=(query,))
    read = ModelInput(trace.text, trace.tokens, trace.target, trace.target_tokens)
    n_queries = read.axis_lengths(f"{path}.queries")["query"]
    if not 0 <= query < n_queries:
        raise ValueError(f"there is no query {query}; the last is {n_queries - 1}")
    n_numbers = count_elements(model.description, spec, read)
    if n_numbers > MAX_NUMBERS:
        raise ValueError(
            f"the streams of this text up to layer {layer} of the {stack} have {n_numbers:,} "
            f"numbers, more than the {MAX_NUMBERS:,} that are allowed; send a shorter text"
        )
    return run_batch(model, spec, [read])[0]


def facts_of(model: Served, path: str) -> AttentionFacts:
    """Return the terms of an attention.

    Raises:
        ValueError: there is none at the path, or its scores have no parts.
    """
    known = {facts.path: facts for facts in model.description.attentions}
    if path not in known:
        raise ValueError(f"there is no attention {path[:80]!r}; the first is {next(iter(known))!r}")
    facts = known[path]
    if facts.scale is None or not facts.is_exact:
        raise ValueError(f"the scores of {path} are more than a scale times queries and keys")
    for site in ("queries", "keys"):
        letter = _LETTERS[site]
        for name in (f"{path}.{site}", f"{path}.W_{letter}"):
            if reason := model.description.omitted.get(name):
                raise ValueError(f"the {site} of {path} are not known by parts: {reason}")
    if f"{path}.rows" not in model.description.capturable:
        raise ValueError(f"the rows of {path} cannot be observed")
    return facts


def score_parts(model: Served, trace: Trace, cell: Cell, *, is_edited: bool = False) -> ScoreParts:
    """Split the score difference of a cell by the parts of the stream on both sides.

    Args:
        model: of the trace.
        trace: of `read_for`, or with the same sites.
        cell: the head, the query and the keys.
        is_edited: whether the pass had interventions; what these change between the stream and the
            scores is then in the remainder, and not an error.

    Raises:
        ValueError: there is no such cell, the query does not see it or nothing else, or the parts
            of this model do not make its scores.
    """
    facts = facts_of(model, cell.path)
    if not 0 <= cell.head < facts.n_heads:
        raise ValueError(f"there is no head {cell.head}; the heads are 0 to {facts.n_heads - 1}")
    weights = trace[f"{cell.path}.rows"][cell.head, 0]
    is_seen = seen_by(facts, cell, weights)
    at, coefficients = contrast(is_seen, cell)
    sides = {
        "queries": Side(model, trace, cell, "queries", torch.tensor([cell.query]), ONE, is_edited),
        "keys": Side(model, trace, cell, "keys", at, coefficients, is_edited),
    }
    assert facts.scale is not None
    query_parts, queries = sides["queries"].parts()
    key_parts, keys = sides["keys"].parts()
    table = (facts.scale * queries @ keys.T).numpy()
    product = facts.scale * float(sides["queries"].final[0] @ (coefficients @ sides["keys"].final))
    of_weights = float(coefficients @ torch.from_numpy(weights)[at].double().log())
    has_logs = bool(weights[at.numpy()].min() > LEAST_WEIGHT)
    score = of_weights if has_logs and not facts.softcap else product
    if facts.has_bias:
        distance = Part(name="distance", kind="distance", stack=cell.path.partition(".")[0])
        query_parts, key_parts = [*query_parts, distance], [*key_parts, distance]
        table = np.pad(table, ((0, 1), (0, 1)))
        table[-1, -1] = of_weights - product
    remainder = score - float(table.sum())
    largest = max(abs(score), float(np.abs(table.sum(axis=0)).max(initial=0.0)))
    if (
        not is_edited
        and trace.precision == "float32"
        and abs(remainder) > LARGE_REMAINDER * largest
    ):
        raise ValueError(
            f"the parts of {cell.path} do not make its scores: {remainder:.2g} of {score:.2g} are "
            "of no part"
        )
    rival = float(weights[at].mean()) if cell.rival is None else float(weights[cell.rival])
    return ScoreParts(
        query_parts=tuple(query_parts),
        key_parts=tuple(key_parts),
        table=table,
        score=score,
        remainder=remainder,
        weights=(float(weights[cell.key]), rival),
        n_visible=int(is_seen.sum()),
        sides=(sides["queries"], sides["keys"]),
    )


def read_by(
    model: Served,
    trace: Trace,
    cell: Cell,
    made: ScoreParts,
    name: str,
    interventions: Sequence[Intervention] = (),
) -> dict[str, Float[np.ndarray, " token"]]:
    """Split the share of an earlier head by the tokens that it read where its write is read.

    Args:
        model: of the trace.
        trace: that of the parts.
        cell: the cell.
        made: its parts.
        name: of the head, such as ``0.1``.
        interventions: of the pass.

    Returns:
        ``query`` and ``key``, as far as the head is a part of the side: by token that the head
        read, at the query or at the key. Those of the query sum to its share; those of the key
        to its share before the rival's, or the mean's, is subtracted.

    Raises:
        ValueError: there is no such head among the parts, or its values are not known.
    """
    query_side, key_side = made.sides
    scale = facts_of(model, cell.path).scale or 1.0
    at_key = int((key_side.at == cell.key).nonzero()[0])
    keys = key_side.coefficients @ key_side.final
    split = {}
    for side, parts, other, at in (
        (query_side, made.query_parts, keys, 0),
        (key_side, made.key_parts, query_side.final[0], at_key),
    ):
        part = next((each for each in parts if each.name == name and each.kind == "head"), None)
        if part is None:
            continue
        assert part.head is not None
        position = int(side.at[at])
        sites = (f"{part.path}.rows", f"{part.path}.values")
        if missing := next((s for s in sites if s not in model.description.capturable), None):
            reason = model.description.omitted.get(missing, "the model has no such site")
            raise ValueError(f"{missing} is needed to split the head {name}: {reason}")
        read = run_batch(
            model,
            PassSpec(sites, None, tuple(interventions), queries=(position,)),
            [ModelInput(trace.text, trace.tokens, trace.target, trace.target_tokens)],
        )[0]
        weights, values = (torch.from_numpy(read[site][part.head]).double() for site in sites)
        vectors = side.reader.of_head(part, weights[0][:, None] * values, at)
        split["query" if side is query_side else "key"] = (
            scale * side.turned(vectors[:, None], slice(at, at + 1))[:, 0] @ other
        ).numpy()
    if any(part.name == name and part.kind == "network" for part in made.key_parts):
        raise ValueError(
            f"the network {name} cannot be split: its activation function mixes all that it reads, "
            "so what it writes is no sum over tokens; name a head"
        )
    if not split:
        heads = [part.name for part in made.key_parts if part.kind == "head"]
        known = f"they are {heads[0]} to {heads[-1]}" if heads else "there is none before it"
        raise ValueError(f"no head {name[:40]!r} writes what this cell reads; {known}")
    return split


def seen_by(
    facts: AttentionFacts, cell: Cell, weights: Float[np.ndarray, " key"]
) -> Bool[np.ndarray, " key"]:
    """Return True at the keys that the query sees, by the mask.

    Where a bias is added to the scores, which only the weights tell, also by their logarithms.
    """
    if facts.has_bias:
        return weights > LEAST_WEIGHT
    terms = Terms() if cell.path.endswith("cross_attention") else facts
    is_visible: Bool[np.ndarray, " key"] = visible_keys(terms, cell.query + 1, len(weights))[
        cell.query
    ]
    return is_visible


def contrast(
    is_seen: Bool[np.ndarray, " key"], cell: Cell
) -> tuple[Tensor, Float[Tensor, " position"]]:
    """Return the keys that take part in a score difference, and the factor of each.

    Raises:
        ValueError: there is no such key, or the query does not see it or nothing else.
    """
    for key in (cell.key, cell.rival):
        if key is None:
            continue
        if not 0 <= key < len(is_seen):
            raise ValueError(f"there is no key {key}; the last is {len(is_seen) - 1}")
        if not is_seen[key]:
            raise ValueError(
                f"the query at {cell.query} does not see the key at {key}: its weight is 0"
            )
    if cell.key == cell.rival:
        raise ValueError(f"key and rival are both {cell.key}; a difference needs two keys")
    visible = np.flatnonzero(is_seen)
    if len(visible) < 2:
        raise ValueError(
            f"the query at {cell.query} sees one key only, so there is nothing to compare it with"
        )
    if cell.rival is not None:
        both = torch.tensor([cell.key, cell.rival])
        return both, torch.tensor([1.0, -1.0], dtype=torch.float64)
    coefficients = torch.full((len(visible),), -1 / len(visible), dtype=torch.float64)
    coefficients[int(np.searchsorted(visible, cell.key))] += 1
    return torch.from_numpy(visible), coefficients


# --- one side -------------------------------------------------------------------------------------


class Side:
    """Queries, keys or values of a head at some positions, by parts of the stream they read."""

    def __init__(
        self,
        model: Served,
        trace: Trace,
        cell: Cell,
        site: str,
        at: Tensor,
        coefficients: Float[Tensor, " position"],
        is_edited: bool = False,
    ) -> None:
        self.trace, self.path, self.head = trace, cell.path, cell.head
        self.at, self.coefficients = at, coefficients
        is_rotated = site != "values" and f"{cell.path}.rotated_queries" in trace
        self.rotation = _rotation(model, trace, cell.path, at) if is_rotated else None
        weights = model.graph_weights()
        matrix = weights.inputs(f"{cell.path}.{site}")
        if matrix is None:
            raise ValueError(f"the matrix of the {site} of {cell.path} is not known")
        stream, norm_site = _stream_of(model, cell.path, site)
        self.reader = StreamReader(trace, weights, model.config, stream, at)
        self.captured = self._held(site)
        self.final = self._held(f"rotated_{site}") if is_rotated else self.captured
        self.head_norm = matrix.norm
        normed = weights.norm(norm_site)
        candidates = (
            [normed, None] if model.config.norm_place in ("pre", "both") else [None, normed]
        )
        for norm in dict.fromkeys(candidates):
            self._read(matrix, norm)
            if is_same(self._behind(self.raw) + self._shift, self.captured):
                return
        if trace.precision != "float32" or is_edited:
            self._read(matrix, candidates[0])
            return
        raise ValueError(
            f"the {site} of {cell.path} are more than a matrix times the norm of the stream"
        )

    def _held(self, site: str) -> Float[Tensor, "position d_head"]:
        return torch.from_numpy(self.trace[f"{self.path}.{site}"][self.head])[self.at].double()

    def _read(self, inputs: InputMatrix, norm: NormParts | None) -> None:
        """Read the stream by matrix and norm: the product before the norm of the head."""
        stream = self.reader.wide(self.reader.site)
        self.matrix = inputs.weight[self.head].double().cpu()
        self.factor = torch.ones(len(self.at), dtype=torch.float64)
        shift = self.matrix.new_zeros(self.matrix.shape[-1])
        if norm is not None:
            self.matrix, size, shift = frozen(norm, stream, self.matrix)
            self.factor = 1 / size
        if inputs.bias is not None:
            shift = shift + inputs.bias[self.head].double().cpu()
        self.constant = shift
        self.raw = (stream @ self.matrix) * self.factor[:, None] + shift

    def _behind(self, vectors: Tensor, where: slice = slice(None)) -> Tensor:
        """Return vectors behind the norm of the head, without its shift, its scale held."""
        norm = self.head_norm
        if norm is None:
            return vectors
        scale = norm.scale[self.head].double().cpu()
        if norm.is_centred:
            factor = 1 / norm.split(self.raw[where])[1]
            vectors = vectors - vectors.mean(dim=-1, keepdim=True)
        else:  # of one head or of all of them: the pass tells the factor
            scaled = self.raw[where] * scale
            factor = (scaled * self.captured[where]).sum(dim=-1, keepdim=True)
            factor = factor / scaled.square().sum(dim=-1, keepdim=True)
        return vectors * scale * factor

    @property
    def _shift(self) -> Tensor | float:
        norm = self.head_norm
        return 0.0 if norm is None or norm.shift is None else norm.shift[self.head].double().cpu()

    def turned(
        self, vectors: Float[Tensor, "*batch position d_head"], where: slice = slice(None)
    ) -> Tensor:
        """Return what the scores read of vectors at some of the positions: normed and rotated."""
        behind = self._behind(vectors, where)
        return behind if self.rotation is None else self.rotation(behind, where)

    def parts(self) -> tuple[list[Part], Float[Tensor, "part d_head"]]:
        """Return the parts, and the sum of each over the positions, each times its factor."""
        names: list[Part] = []
        sums: list[Tensor] = []
        for parts, vectors in self.reader.parts(self.matrix, self.factor):
            if parts[-1].kind == "constant":
                vectors[-1] += self.constant
            behind = self._behind(vectors)
            if parts[-1].kind == "constant":
                behind[-1] += self._shift
            turned = behind if self.rotation is None else self.rotation(behind)
            names += parts
            sums.append(torch.einsum("pnd,n->pd", turned, self.coefficients))
        order = sorted(range(len(names)), key=lambda number: _order(names[number]))
        return [names[number] for number in order], torch.cat(sums)[order]


def _order(part: Part) -> tuple[bool, int, bool, bool]:
    """Return the place of a part in the order of the pass; parts of one attention are equal."""
    is_end = part.kind == "constant"
    layer = -1 if part.layer is None else part.layer
    return is_end, layer, part.kind in ("position", "network"), "cross_attention" in part.path


def _stream_of(model: Served, path: str, site: str) -> tuple[str, str]:
    """Return the site of the stream that queries or keys are made of, and that of the norm."""
    layer, _, kind = path.rpartition(".")
    sites = frozenset(model.description.site_names)
    if kind == "cross_attention" and site != "queries":
        last = f"encoder.layers.{model.config.n_layers - 1}.residual.after"
        return last, "encoder.norm"
    between = f"{layer}.residual.between"
    stream = between if kind == "cross_attention" and between in sites else ""
    return stream or f"{layer}.residual.before", f"{layer}.{kind.removeprefix('self_')}_norm"


def sites_for(model: Served, facts: AttentionFacts) -> tuple[str, ...]:
    """Return the sites that the parts of an attention's scores are made of.

    Raises:
        ValueError: the model lacks one.
    """
    known = model.description.site_names
    wanted = ["queries", "keys", "rotated_queries", "rotated_keys"]
    sites = {name for part in wanted if (name := f"{facts.path}.{part}") in known}
    ends = [".residual.before", ".residual.between", ".residual.middle", "attention.context"]
    ends += ["attention.gain", ".embedding.tokens", ".embedding.positional"]
    outputs = ("attention.output", "feed_forward.output", "experts.output")
    for site in ("queries", "keys"):
        stream, _ = _stream_of(model, facts.path, site)
        if stream not in known:
            reason = model.description.omitted.get(stream, "the model has no such site")
            raise ValueError(f"{stream} is needed: {reason}")
        stack, _, last, *_ = stream.split(".")
        sites.add(stream)
        for name in known:
            layer = layer_of(name)
            if name.partition(".")[0] != stack or (layer is not None and layer > int(last)):
                continue
            is_summed = model.config.norm_place != "post" and (
                f"{stack}.layers.{layer}.residual.middle" in known
            )
            if name.endswith(tuple(ends)) or (name.endswith(outputs) and not is_summed):
                sites.add(name)
    return (*(name for name in known if name in sites), f"{facts.path}.rows")


# --- rotations ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Turn:
    """The rotation of vectors at some positions: pairs of dimensions, and a complex factor each."""

    first: Tensor
    second: Tensor
    factors: Tensor  # position pair

    def __call__(
        self, vectors: Float[Tensor, "*batch position d_head"], where: slice = slice(None)
    ) -> Tensor:
        """Return the rotated vectors, at some of the positions."""
        pairs = torch.complex(vectors[..., self.first], vectors[..., self.second])
        pairs = pairs * self.factors[where]
        turned = vectors.clone()
        turned[..., self.first], turned[..., self.second] = pairs.real, pairs.imag
        return turned


def _rotation(model: Served, trace: Trace, path: str, at: Tensor) -> _Turn:
    """Return the rotation of an attention, read from its queries and keys in the pass.

    Raises:
        ValueError: it does not turn pairs of dimensions.
    """
    before, after = (
        torch.cat(
            [torch.from_numpy(trace[f"{path}.{begin}{part}"]) for part in ("queries", "keys")]
        ).double()
        for begin in ("", "rotated_")
    )
    for first, second in _pairs(model, before.shape[-1], before, after):
        turn = _Turn(first, second, torch.zeros(0))
        given, made = (
            torch.complex(each[..., first], each[..., second]) for each in (before, after)
        )
        size = given.abs().square().sum(dim=0).clamp(min=1e-300)
        turn = replace(turn, factors=(given.conj() * made).sum(dim=0) / size)
        if is_same(turn(before), after):
            return replace(turn, factors=turn.factors[at])
    raise ValueError(f"the rotation of the queries of {path} does not turn pairs of numbers")


def _pairs(model: Served, width: int, before: Tensor, after: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return the pairs of dimensions that may be rotated together, the likeliest first."""
    known = model.description.rotation
    pairs = []
    if known is not None:
        pairs.append((torch.tensor(known.first), torch.tensor(known.second)))
    changed = ((before - after).abs().amax(dim=(0, 1)) > 0).nonzero().flatten()
    widths = [width, width // 2, width // 4]
    if len(changed):
        widths.append(int(changed.max() - changed.min()) + 1)
    for rotated in dict.fromkeys(widths):
        half, starts = rotated // 2, dict.fromkeys((0, width - rotated))
        for start in starts:
            pairs.append((torch.arange(half) + start, torch.arange(half) + start + half))
            pairs.append((torch.arange(half) * 2 + start, torch.arange(half) * 2 + start + 1))
    return pairs
