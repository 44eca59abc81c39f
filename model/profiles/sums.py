"""Sums of every head's scores over batches of sentences, which can be added up in any division.

A pass gives the weights of many sentences. Which keys a score counts depends only on the tokens and
on what a query sees, so the masks of all scores are made once for the layers that see alike, and
one product of the weights with the masks adds up every score of every head:

    sums[head, score] = Σ weights[sentence, head, query, key] · mask[score, sentence, query, key]

All sums are float64, so that the order in which shards of a corpus are added does not matter to
1e-12. The scores are those of `headlight.model.profiles.measure`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headlight.model.analysis.head_labels import monotonic
from headlight.model.analysis.layers import visible_keys
from headlight.model.attention.terms import Terms
from headlight.model.distributions import entropy
from headlight.model.served import Served
from headlight.model.trace import AttentionFacts, Token
from headlight.model.tracing import ModelInput

N_STRONGEST = 10
DISTANCE, ENTROPY, BROAD, MONOTONIC = "distance", "entropy", "broad", "monotonic"


@dataclass(frozen=True)
class Tokens:
    """The tokens of one side of a batch, padded: ids and properties (row, token), and lengths."""

    rows: Sequence[Sequence[Token]]
    lengths: Int[Tensor, " row"]
    ids: Int[Tensor, "row token"]
    is_token: Bool[Tensor, "row token"]
    is_special: Bool[Tensor, "row token"]
    is_typed: Bool[Tensor, "row token"]
    is_first_word: Bool[Tensor, "row token"]
    is_punctuation: Bool[Tensor, "row token"]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Token]]) -> Tokens:
        """Pad the tokens of some texts."""
        longest = max(map(len, rows))

        def padded(values: list[list[Any]], dtype: torch.dtype) -> Tensor:
            return torch.tensor(
                [[*row, *[0] * (longest - len(row))] for row in values], dtype=dtype
            )

        first = [next((t.word for t in row if t.word is not None), None) for row in rows]
        return cls(
            rows,
            torch.tensor([len(row) for row in rows]),
            padded([[t.id for t in row] for row in rows], torch.long),
            padded([[1] * len(row) for row in rows], torch.bool),
            padded([[t.is_special for t in row] for row in rows], torch.bool),
            padded([[t.is_typed for t in row] for row in rows], torch.bool),
            padded(
                [
                    [t.word is not None and t.word == word for t in row]
                    for row, word in zip(rows, first, strict=True)
                ],
                torch.bool,
            ),
            padded([[_is_punctuation(t) for t in row] for row in rows], torch.bool),
        )

    @property
    def is_last_boundary(self) -> Bool[Tensor, "row token"]:
        """Whether a token is the last one and spells nothing of the text."""
        places = torch.arange(self.ids.shape[1])
        return (places == self.lengths[:, None] - 1) & ~self.is_typed


def _is_punctuation(token: Token) -> bool:
    text = token.text.strip()
    return bool(text) and not token.is_special and not any(map(str.isalnum, text))


@dataclass(frozen=True)
class Sight:
    """The keys that a query of an attention sees; attentions of equal sight share their masks."""

    stack: str
    is_cross: bool
    is_causal: bool
    window: int | None
    chunk: int | None

    @classmethod
    def of(cls, facts: AttentionFacts) -> Sight:
        """Return the sight of an attention."""
        stack = facts.path.partition(".")[0]
        is_cross = facts.path.endswith("cross_attention")
        limits = (None, None) if is_cross else (facts.window, facts.chunk)
        return cls(stack, is_cross, bool(facts.is_causal) and not is_cross, *limits)

    def visible(self, queries: Tokens, keys: Tokens) -> Bool[Tensor, "row query key"]:
        """Return True where a query sees a key, and neither is padding."""
        terms = Terms(is_causal=self.is_causal, window=self.window, chunk=self.chunk)
        seen = visible_keys(terms, queries.ids.shape[1], keys.ids.shape[1])
        both = queries.is_token[:, :, None] & keys.is_token[:, None, :]
        return both & torch.from_numpy(seen)


def key_sets(
    sight: Sight, queries: Tokens, keys: Tokens
) -> dict[str, Bool[Tensor, "row query key"]]:
    """Return masks of the keys that each score counts, also of keys that a query cannot see."""
    query = torch.arange(queries.ids.shape[1])[:, None]
    key = torch.arange(keys.ids.shape[1])
    is_other = ((key != query) | sight.is_cross)[None]
    of_first_word = keys.is_first_word[:, None, :] & is_other
    if not sight.is_cross:  # inside its first word, a token attends to its own word
        of_first_word = of_first_word & ~queries.is_first_word[:, :, None]
    masks = {
        "first_token": (key == 0) & is_other,
        "first_word": of_first_word,
        "punctuation": keys.is_punctuation[:, None, :] & is_other,
    }
    last_boundary = keys.is_last_boundary[:, None, :] & is_other
    masks["sink"] = masks["first_token"] | of_first_word | last_boundary
    if sight.is_cross:
        return masks
    follows_same = torch.zeros((len(keys.ids), len(query), len(key)), dtype=torch.bool)
    follows_same[:, :, 1:] = keys.ids[:, :, None] == keys.ids[:, None, :-1]
    masks |= {
        "previous": (key == query - 1)[None],
        "current": (key == query)[None],
        "induction": follows_same & (key < query - 1),
    }
    return masks if sight.is_causal else masks | {"next": (key == query + 1)[None]}


@dataclass(frozen=True)
class Masks:
    """The masks that all heads of equal sight share on a batch.

    ``columns`` (place, score) weights each (row, query, key); ``controls`` and ``counts`` are those
    of the scores. ``is_excluded`` (row, query, key): no strongest place.
    """

    names: tuple[str, ...]
    columns: Float[Tensor, "place score"]
    controls: Mapping[str, float]
    counts: Mapping[str, int]
    is_inside: Bool[Tensor, "row query key"]
    n_visible: Int[Tensor, "row query"]
    is_excluded: Bool[Tensor, "row query key"]

    @classmethod
    def of(cls, sight: Sight, queries: Tokens, keys: Tokens) -> Masks:
        """Make the masks of a batch."""
        visible = sight.visible(queries, keys)
        n_visible = visible.sum(dim=2)
        sets = key_sets(sight, queries, keys)
        columns, controls, counts = [], {}, {}
        for name, targets in sets.items():
            wanted = targets & visible
            n_wanted = wanted.sum(dim=2)
            counted = (n_wanted > 0) & (n_visible > n_wanted)
            columns.append((wanted & counted[:, :, None]).flatten().double())
            share = n_wanted.double() / n_visible.clamp(min=1)
            controls[name] = float(share[counted].sum())
            counts[name] = int(counted.sum())
        is_inside = queries.is_token[:, :, None] & keys.is_token[:, None, :]
        query = torch.arange(queries.ids.shape[1])[:, None]
        key = torch.arange(keys.ids.shape[1])
        columns.append(((query - key).abs() * is_inside).flatten().double())
        counts[DISTANCE] = int(queries.is_token.sum())
        counts[ENTROPY] = counts[BROAD] = int((n_visible > 1).sum())
        excluded = sets["sink"] | ~visible | queries.is_special[:, :, None]
        if not sight.is_cross:
            excluded = excluded | (query == key)
        return cls(
            (*sets, DISTANCE),
            torch.stack(columns, dim=1),
            controls,
            counts,
            is_inside,
            n_visible,
            excluded,
        )


@dataclass
class HeadSums:
    """The sums of the heads of one attention over the queries of all sentences.

    ``strongest`` has for each head, by the texts of query and key, the greatest weight and its
    place: ``order`` is the number of its sentence, by which equal weights are ordered.
    """

    n_heads: int
    weights: dict[str, Float[np.ndarray, " head"]] = field(default_factory=dict)
    controls: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    strongest: list[dict[tuple[str, str], dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.strongest:
            self.strongest = [{} for _ in range(self.n_heads)]

    def add(self, name: str, weights: Any, control: Any, count: int) -> None:
        """Add to a score: a sum for each head, that of its control, and the number of queries.

        The control is one number for all heads, or one for each.
        """
        zeros = np.zeros(self.n_heads)
        self.weights[name] = self.weights.get(name, zeros) + np.asarray(weights, dtype=np.float64)
        self.controls[name] = self.controls.get(name, 0.0) + control
        self.counts[name] = self.counts.get(name, 0) + count

    def mean(self, name: str, head: int) -> tuple[float, float]:
        """Return the score of a head and its control."""
        count = self.counts[name]
        control = np.broadcast_to(self.controls[name], self.n_heads)
        return float(self.weights[name][head]) / count, float(control[head]) / count

    def keep(self, head: int, named: tuple[str, str], place: dict[str, Any]) -> None:
        """Keep a strong place, if no stronger one of these two texts is known."""
        best = self.strongest[head].get(named)
        if best is None or _rank(place) < _rank(best):
            self.strongest[head][named] = place

    def best(self, head: int) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the strongest places of a head, the strongest first."""
        ranked = sorted(self.strongest[head].items(), key=lambda item: _rank(item[1]))
        return dict(ranked[:N_STRONGEST])

    def least_kept(self) -> list[float]:
        """Return for each head the weight below which a place is not among the strongest."""
        return [
            min(place["weight"] for place in places.values()) if len(places) >= N_STRONGEST else 0.0
            for places in self.strongest
        ]

    def trim(self) -> None:
        """Forget all but the strongest places, so that memory does not grow with the text."""
        self.strongest = [self.best(head) for head in range(self.n_heads)]

    def merge(self, other: HeadSums) -> None:
        """Add the sums of other sentences."""
        for name, count in other.counts.items():
            self.add(name, other.weights[name], other.controls[name], count)
        for head, places in enumerate(other.strongest):
            for named, place in places.items():
                self.keep(head, named, place)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as plain data; floats keep every bit as JSON."""
        self.trim()
        return {
            "n_heads": self.n_heads,
            "weights": {name: values.tolist() for name, values in self.weights.items()},
            "controls": self.controls,
            "counts": self.counts,
            "strongest": [
                [[*named, place] for named, place in places.items()] for places in self.strongest
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HeadSums:
        """Return the sums that `to_dict` wrote."""
        return cls(
            data["n_heads"],
            {name: np.array(values) for name, values in data["weights"].items()},
            dict(data["controls"]),
            dict(data["counts"]),
            [{(query, key): place for query, key, place in of} for of in data["strongest"]],
        )


def _rank(place: Mapping[str, Any]) -> tuple[Any, ...]:
    return (-place["weight"], place["order"], place["query"], place["key"])


class Reader:
    """Reads batches of sentences and adds up what every head does.

    Args:
        checkpoint: the model.
    """

    def __init__(self, checkpoint: Served) -> None:
        description = checkpoint.description
        sites = set(description.site_names)
        self.checkpoint = checkpoint
        self.facts = {
            facts.path: facts
            for facts in description.attentions
            if f"{facts.path}.weights" in sites
        }
        self.sums = {path: HeadSums(facts.n_heads) for path, facts in self.facts.items()}

    def read(
        self, inputs: Sequence[ModelInput], orders: Sequence[Any]
    ) -> Iterator[tuple[AttentionFacts, Tokens, Tokens, Float[Tensor, "row head query key"]]]:
        """Read a batch and add its sums.

        Args:
            inputs: the sentences.
            orders: of each the place in the text; any value that can be compared.

        Yields:
            The facts of each attention, the tokens of its queries and keys, and its weights.
        """
        sources = Tokens.of([model_input.tokens for model_input in inputs])
        targets = None
        if inputs[0].target_tokens is not None:
            targets = Tokens.of([model_input.target_tokens or () for model_input in inputs])
        captured = self.checkpoint.read(
            [[t.id for t in row] for row in sources.rows],
            [[t.id for t in row] for row in targets.rows] if targets else None,
            sites=[f"{path}.weights" for path in self.facts],
        )
        masks: dict[Sight, Masks] = {}
        for path, facts in self.facts.items():
            sight = Sight.of(facts)
            queries = targets if targets and sight.stack == "decoder" else sources
            keys = sources if sight.is_cross else queries
            if sight not in masks:
                masks[sight] = Masks.of(sight, queries, keys)
            of_path = masks[sight]
            weights = captured[f"{path}.weights"].detach().float().cpu()
            weights = weights.masked_fill(~of_path.is_inside[:, None], 0.0)
            self._add(self.sums[path], of_path, weights, queries, keys, orders, sight)
            yield facts, queries, keys, weights

    def _add(
        self,
        sums: HeadSums,
        masks: Masks,
        weights: Float[Tensor, "row head query key"],
        queries: Tokens,
        keys: Tokens,
        orders: Sequence[Any],
        sight: Sight,
    ) -> None:
        by_head = weights.double().transpose(0, 1).flatten(1)
        totals = (by_head @ masks.columns).numpy()
        for column, name in enumerate(masks.names):
            control = masks.controls.get(name, 0.0)
            sums.add(name, totals[:, column], control, masks.counts[name])
        spread = entropy(weights, "bits", torch.float64)
        bits = torch.where((masks.n_visible > 1)[:, None], spread, 0.0)
        sums.add(ENTROPY, bits.sum(dim=(0, 2)).numpy(), 0.0, masks.counts[ENTROPY])
        widest = masks.n_visible.clamp(min=2).double().log2()[:, None]
        sums.add(BROAD, (bits / widest).sum(dim=(0, 2)).numpy(), 0.0, masks.counts[BROAD])
        if sight.is_cross:
            ordinary = (side.is_token & ~side.is_special for side in (queries, keys))
            values = monotonic(weights.double(), *ordinary)
            sums.add(MONOTONIC, values.sum(dim=0).numpy(), 0.0, len(weights))
        _keep_strongest(sums, masks, weights, queries, keys, orders)


def _keep_strongest(
    sums: HeadSums,
    masks: Masks,
    weights: Float[Tensor, "row head query key"],
    queries: Tokens,
    keys: Tokens,
    orders: Sequence[Any],
) -> None:
    """Keep the greatest weight of each sentence, if it is not on a sink or on the query itself.

    Of each two texts of query and key only the strongest pair is kept.
    """
    allowed = weights.masked_fill(masks.is_excluded[:, None], -1.0).flatten(2)
    greatest, at = allowed.max(dim=2)
    n_keys = weights.shape[3]
    ordered, rows = greatest.sort(dim=0, descending=True)
    for head, least in enumerate(sums.least_kept()):
        named: set[tuple[str, str]] = set()
        last = 0.0
        for weight, row in zip(ordered[:, head].tolist(), rows[:, head].tolist(), strict=True):
            # Behind enough other pairs, a weaker place cannot be among the strongest.
            if weight <= 0 or weight < least or (len(named) >= N_STRONGEST and weight < last):
                break
            query, key = divmod(int(at[row, head]), n_keys)
            of_query, of_key = queries.rows[row][query], keys.rows[row][key]
            place = {
                "order": orders[row],
                "query": query,
                "key": key,
                "weight": weight,
                "query_span": span(of_query),
                "key_span": span(of_key),
            }
            sums.keep(head, (of_query.text, of_key.text), place)
            named.add((of_query.text, of_key.text))
            last = weight
    sums.trim()


def span(token: Token) -> list[int]:
    """Return the characters of a token without the space before it."""
    n_spaces = len(token.text) - len(token.text.lstrip())
    return [min(token.start + n_spaces, token.end), token.end]
