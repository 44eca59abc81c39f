"""Pairs of texts, the logit differences they are measured by, and passes over many pairs.

A pair is a clean text, a corrupted one of as many tokens, and the tokens that are right and wrong
after the clean one. D = ln Σ_right e^logit − ln Σ_wrong e^logit: of one token each, the difference
of their logits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.circuits.edges import Edges
from headlight.model.circuits.graph import Graph
from headlight.model.circuits.parts import GraphParts, parts_of
from headlight.model.circuits.path_patching import Ids, MixedPasses
from headlight.model.interventions.intervention import Intervention
from headlight.model.served import Served

Baseline: TypeAlias = Literal["corrupted", "zero", "mean"]

MAX_BYTES = 2**28
"""The memory of what one pass keeps: 4·rows·tokens·(writers + readers of a layer)·d_model."""


class UnfitPair(ValueError):
    """A pair whose texts cannot be compared."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A pair as token ids; ``position`` is that of the prediction, of the target if there is one.

    Raises:
        UnfitPair: the texts have different numbers of tokens, or no token is right or wrong.
    """

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    right: tuple[int, ...]
    wrong: tuple[int, ...]
    position: int
    target: tuple[int, ...] | None = None
    corrupted_target: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name, first, last in (
            ("text", self.clean, self.corrupted),
            ("target", self.target or (), self.corrupted_target or ()),
        ):
            if len(first) != len(last):
                raise UnfitPair(
                    f"the clean {name} has {len(first)} tokens and the corrupted one {len(last)}; "
                    "a pair needs as many of each, because edges are compared position by position"
                )
        if not self.right or not self.wrong or set(self.right) & set(self.wrong):
            raise UnfitPair("a pair needs tokens that are right and others that are wrong")

    @property
    def shape(self) -> tuple[int, int, int]:
        """The tokens of its texts, of its targets, and the position of the prediction."""
        return len(self.clean), len(self.target or ()), self.position

    @property
    def n_tokens(self) -> int:
        """The tokens of one of its texts, with its target."""
        return len(self.clean) + len(self.target or ())


@dataclass(frozen=True)
class PairPasses:
    """Passes over the pairs of a task, a bounded number of rows at once.

    Args:
        model: the model.
        pairs: at least one.
        interventions: act in every pass.
        baseline: what the readers of cut edges read: the corrupted text, zero, or the mean of each
            writer over all positions of the corrupted texts.
        max_bytes: the memory of what one pass keeps.
        by_position: whether each edge is cut at each position by itself.
        by_expert: whether experts are writers apart.

    Raises:
        NoGraph: the model has no exact graph.
        UnfitPair: positions are told apart, and the pairs differ in their length.
    """

    model: Served
    pairs: tuple[Pair, ...]
    interventions: tuple[Intervention, ...] = ()
    baseline: Baseline = "corrupted"
    max_bytes: int = MAX_BYTES
    by_position: bool = False
    by_expert: bool = False

    def __post_init__(self) -> None:
        shapes = sorted({pair.shape for pair in self.pairs})
        if self.by_position and len(shapes) > 1:
            lengths = " and ".join(str(each[0] if not each[1] else each) for each in shapes[:2])
            raise UnfitPair(
                f"by position all pairs need the same number of tokens; these have {lengths}"
            )

    @property
    def parts(self) -> GraphParts:
        """The graph with its weights."""
        return parts_of(self.model, by_expert=self.by_expert)

    @cached_property
    def edges(self) -> Edges:
        """The edges that are scored and cut, by position if positions are told apart."""
        is_causal = self.model.config.kind != "encoder"
        if not self.by_position:
            return Edges(self.graph, is_causal=is_causal)
        n_text, n_target, position = self.pairs[0].shape
        return Edges(self.graph, max(n_text, n_target), position, is_causal)

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.parts.graph

    @property
    def passes(self) -> MixedPasses:
        """The passes with cut edges."""
        return MixedPasses(self.model, self.parts, self.interventions)

    def groups(self) -> Iterator[list[int]]:
        """Yield the numbers of pairs of one length that fit into memory together."""
        by_length: dict[tuple[int, int], list[int]] = {}
        for number, pair in enumerate(self.pairs):
            key = len(pair.clean), len(pair.target or ())
            by_length.setdefault(key, []).append(number)
        for (n_text, n_target), numbers in sorted(by_length.items()):
            size = self.rows_at_once(max(n_text, n_target))
            for start in range(0, len(numbers), size):
                yield numbers[start : start + size]

    def rows_at_once(self, n_tokens: int) -> int:
        """Return how many texts of that length one pass reads."""
        graph, config = self.graph, self.model.config
        width = len(graph.writers) + 4 * (3 * config.n_heads + 1)
        logits = 2 * config.vocab_size // config.d_model
        return max(1, self.max_bytes // (4 * n_tokens * (width + logits) * config.d_model))

    def whole(self) -> tuple[Float[np.ndarray, " pair"], Float[np.ndarray, " pair"]]:
        """Return D of each pair's clean text, and of its corrupted one."""
        clean, corrupted = (np.zeros(len(self.pairs)) for _ in range(2))
        for numbers in self.groups():
            check()
            pairs = [self.pairs[number] for number in numbers]
            for is_clean, out in ((True, clean), (False, corrupted)):
                with torch.inference_mode(False), torch.no_grad():
                    logits = self.model.run(
                        *texts_of(pairs, is_clean=is_clean),
                        edits=(),
                        interventions=self.interventions,
                    )
                out[numbers] = differences(logits, pairs).double().cpu().numpy()
        return clean, corrupted

    def with_only(
        self, kept: Sequence[Collection[int]], *, is_reversed: bool = False
    ) -> Float[np.ndarray, "variant pair"]:
        """Return D in runs in which only some edges are of the run itself.

        All other edges are of the baseline. Each variant has its own edges.

        Args:
            kept: the numbers of the edges, of each variant.
            is_reversed: the corrupted text is read, and the other edges are of the clean one.

        Raises:
            Cancelled: as `cancellation`.
        """
        out = np.zeros((len(kept), len(self.pairs)))
        edges = self.edges
        for numbers in self.groups():
            pairs = [self.pairs[number] for number in numbers]
            other = self._other(pairs, is_reversed=is_reversed)
            texts, targets = texts_of(pairs, is_clean=not is_reversed)
            longest = max(len(texts[0]), len(targets[0]) if targets else 0)
            size = max(1, self.rows_at_once(longest) // len(pairs))
            for start in range(0, len(kept), size):
                check()
                cut = all_but(edges, kept[start : start + size], self.model.device)
                logits = self.passes.logits(texts, targets, cut, other)
                for row, of_variant in enumerate(logits):
                    out[start + row, numbers] = differences(of_variant, pairs).double().cpu()
        return out

    def _other(self, pairs: Sequence[Pair], *, is_reversed: bool) -> Mapping[int, Tensor]:
        writes, _ = self.passes.writes(*texts_of(pairs, is_clean=is_reversed))
        if self.baseline == "corrupted" or is_reversed:
            return writes
        if self.baseline == "zero":
            return {number: torch.zeros_like(each[:, :1]) for number, each in writes.items()}
        return {
            number: each.mean(dim=(0, 1), keepdim=True).expand(len(pairs), 1, -1)
            for number, each in writes.items()
        }


def texts_of(pairs: Sequence[Pair], *, is_clean: bool) -> tuple[Ids, Ids | None]:
    """Return the ids of one text of each pair, and of its target."""
    if is_clean:
        texts, targets = [pair.clean for pair in pairs], [pair.target for pair in pairs]
    else:
        texts = [pair.corrupted for pair in pairs]
        targets = [pair.corrupted_target for pair in pairs]
    given = [target for target in targets if target is not None]
    return texts, given or None


def differences(
    logits: Float[Tensor, "pair query vocab"], pairs: Sequence[Pair]
) -> Float[Tensor, " pair"]:
    """Return D of each pair."""
    # Only the rows that predict are widened: those of all positions may be a gigabyte.
    rows = []
    for number, pair in enumerate(pairs):
        at = logits[number, pair.position]
        at = at.double() if logits.device.type != "mps" else at.float()
        rows.append(at[list(pair.right)].logsumexp(0) - at[list(pair.wrong)].logsumexp(0))
    return torch.stack(rows)


def all_but(
    edges: Edges, kept: Sequence[Collection[int]], device: torch.device
) -> Bool[Tensor, "variant writer reader query"]:
    """Return the mask that cuts all edges but those that each variant keeps."""
    graph, n = edges.graph, edges.n_positions
    every = np.zeros((len(graph.writers), len(graph.readers), n), dtype=np.bool_)
    every[edges.places[:, 0], edges.places[:, 1]] = True
    cut = np.repeat(every[None], len(kept), axis=0)
    for row, numbers in enumerate(kept):
        chosen = np.fromiter(numbers, dtype=np.int64, count=len(numbers))
        places = edges.places[chosen // n]
        cut[row, places[:, 0], places[:, 1], chosen % n] = False
    return torch.from_numpy(cut).to(device)
