"""The strongest path to a prediction: head ← earlier head ← token, each edge ablated.

The last head is the one without which the logit difference falls most, of those that write for the
token. An earlier head's edge to it is cut by path patching (Wang et al. 2022,
https://arxiv.org/abs/2211.00593, section 3.1; Goldowsky-Dill et al. 2023,
https://arxiv.org/abs/2304.05969): only the last head reads the pass without the earlier one. The
edge that costs most is the strongest. The token's edge is cut by taking its weight out of the
head's row (Geva et al. 2023, https://arxiv.org/abs/2304.14767).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from headlight.model.analysis.edited_passes import EditedPasses, Row
from headlight.model.analysis.logit_attribution import Attribution, LogitDifference
from headlight.model.site_edit import SiteEdit
from headlight.model.trace import NamedArray

MOST_LAST_HEADS = 48
"""The heads that are ablated to find the last: those that write most for the token."""

MOST_KEYS = 4
"""The keys of the last head at which an earlier head is looked for, in addition to its query."""

MOST_EARLIER_HEADS = 24
"""The edges that are cut: those whose heads change most of what the last head reads."""

LEAST_SHARE = 0.1
"""Its edge carries at least this share of what the last head's ablation costs, or there is none."""


@dataclass(frozen=True, kw_only=True)
class HeadAt:
    """A head at one position: ``path`` is that of its attention."""

    path: str
    head: int
    position: int


@dataclass(frozen=True, kw_only=True)
class Edge:
    """An edge of the path, and the prediction without it.

    ``reader`` None: the prediction reads it. ``head`` None: the edge begins at a token, at
    ``token`` of the text that the reader's keys are of. ``difference`` and ``probability`` are
    those of the pass without the edge.
    """

    reader: HeadAt | None
    head: HeadAt | None = None
    token: int | None = None
    difference: float
    probability: float


@dataclass(frozen=True)
class StrongestPath:
    """The prediction, the path from its end to its beginning, and the array of the ablations.

    ``ablations`` (candidate): the logit differences without each of ``candidates``.
    """

    difference: float
    probability: float
    edges: tuple[Edge, ...]
    candidates: tuple[HeadAt, ...]
    ablations: NamedArray


def strongest_path(
    passes: EditedPasses, attribution: Attribution, difference: LogitDifference
) -> StrongestPath:
    """Find the strongest path of two heads to a prediction, or of one if no other feeds it.

    Args:
        passes: over the text of a trace with all heads' weights and contexts.
        attribution: of the same prediction, with keys.
        difference: the prediction.

    Raises:
        ValueError: no head writes for the token, or the trace holds no weights.
        TooManyPasses, Cancelled: as `EditedPasses.predict`.
    """
    return _Search(passes, attribution, difference).find()


class _Search:
    def __init__(
        self, passes: EditedPasses, attribution: Attribution, difference: LogitDifference
    ) -> None:
        self.passes, self.trace, self.at = passes, passes.trace, difference
        self.arrays = attribution.arrays
        self.stack = "decoder" if passes.checkpoint.config.has_decoder else "encoder"
        if self.trace.heads is not None:
            raise ValueError("the path is looked for among all heads; leave heads out")

    def find(self) -> StrongestPath:
        """Return the path from its end: the last head, the head before it, and the token."""
        candidates = self._writers()
        if not candidates:
            raise ValueError("no head writes directly for this token rather than the other")
        rows = [[_silenced(writer)] for writer in candidates]
        predictions = self.passes.predict([[], *rows], self.at)
        differences, probabilities = predictions
        best = 1 + int(np.argmin(differences[1:]))
        last = candidates[best - 1]
        edges = [
            Edge(
                reader=None,
                head=last,
                difference=float(differences[best]),
                probability=float(probabilities[best]),
            )
        ]
        first = last
        lost = float(differences[0] - differences[best])
        if lost > 0 and (earlier := self._before(last, float(differences[0]), lost)) is not None:
            edges.append(earlier)
            assert earlier.head is not None
            first = earlier.head
        edges.append(self._token(first))
        return StrongestPath(
            float(differences[0]),
            float(probabilities[0]),
            tuple(edges),
            tuple(candidates),
            NamedArray(("candidate",), differences[1:].astype(np.float32)),
        )

    def _writers(self) -> list[HeadAt]:
        """Return the heads that write for the token, the strongest first."""
        ranked: list[tuple[float, HeadAt]] = []
        for kind in ("self_attention", "cross_attention"):
            if f"{kind}.heads" not in self.arrays:
                continue
            for (layer, head), value in np.ndenumerate(self.arrays[f"{kind}.heads"].data):
                path = f"{self.stack}.layers.{layer}.{kind}"
                if value > 0 and f"{path}.weights" in self.trace:
                    writer = HeadAt(path=path, head=int(head), position=self.at.position)
                    ranked.append((float(value), writer))
        ranked.sort(key=lambda pair: -pair[0])
        return [writer for _, writer in ranked[:MOST_LAST_HEADS]]

    def _keys(self, reader: HeadAt) -> list[int]:
        """Return the keys from which the last head takes most, for or against."""
        layer, kind = int(reader.path.split(".")[2]), reader.path.split(".")[3]
        row = self.arrays[f"{kind}.keys"].data[layer, reader.head]
        order = np.argsort(-np.abs(row), kind="stable")[:MOST_KEYS]
        return [int(key) for key in order if row[key] != 0]

    def _before(self, reader: HeadAt, whole: float, lost: float) -> Edge | None:
        """Return the earlier head whose edge to the reader carries most of the logit difference.

        Args:
            reader: the last head.
            whole: the logit difference of the pass.
            lost: what the ablation of the reader takes from it.
        """
        candidates = self._earlier(reader)
        if not candidates:
            return None
        site = f"{reader.path}.context"

        def take(captured: Mapping[str, Tensor]) -> Float[np.ndarray, "row d_head"]:
            rows = captured[site][:, reader.head, reader.position]
            vectors: Float[np.ndarray, "row d_head"] = rows.double().cpu().numpy()
            return vectors

        rows: list[Row] = [[], *([_silenced(writer)] for writer in candidates)]
        contexts = self.passes.read(rows, [site], take)
        changes = np.linalg.norm(contexts[1:] - contexts[0], axis=-1)
        chosen = np.argsort(-changes, kind="stable")[:MOST_EARLIER_HEADS]
        edits = [
            SiteEdit(
                kind="set",
                site=site,
                value=contexts[1 + index].astype(np.float32),
                heads=(reader.head,),
                positions=(reader.position,),
            )
            for index in chosen
        ]
        predictions = self.passes.predict([[edit] for edit in edits], self.at)
        best = int(np.argmin(predictions.differences))
        if whole - predictions.differences[best] < LEAST_SHARE * lost:
            return None
        return Edge(
            reader=reader,
            head=candidates[chosen[best]],
            difference=float(predictions.differences[best]),
            probability=float(predictions.probabilities[best]),
        )

    def _earlier(self, reader: HeadAt) -> list[HeadAt]:
        """Return the heads before the reader, at its keys and at its query."""
        _, _, number, kind = reader.path.split(".")
        places = {(self.stack, reader.position)}
        key_stack = "encoder" if kind == "cross_attention" else self.stack
        places |= {(key_stack, key) for key in self._keys(reader)}
        candidates = []
        for stack, position in sorted(places):
            for site, array in self.trace.tensors.items():
                parts = site.split(".")
                if parts[0] != stack or not site.endswith("_attention.context"):
                    continue
                is_before = stack != self.stack or int(parts[2]) < int(number)
                if is_before and f"{site.removesuffix('.context')}.weights" in self.trace:
                    path = site.removesuffix(".context")
                    candidates += [
                        HeadAt(path=path, head=head, position=position)
                        for head in range(len(array.data))
                    ]
        return candidates

    def _token(self, reader: HeadAt) -> Edge:
        """Return the key without which the prediction falls most."""
        weights = self.trace[f"{reader.path}.weights"][reader.head, reader.position]
        keys = [int(key) for key in np.flatnonzero(weights > 0)]
        rows = [[_knocked_out(reader, weights, key)] for key in keys]
        differences, probabilities = self.passes.predict(rows, self.at)
        best = int(np.argmin(differences))
        return Edge(
            reader=reader,
            token=keys[best],
            difference=float(differences[best]),
            probability=float(probabilities[best]),
        )


def _silenced(head: HeadAt) -> SiteEdit:
    """Return the edit after which a head writes nothing at its position."""
    return SiteEdit(
        kind="set",
        site=f"{head.path}.context",
        value=0.0,
        heads=(head.head,),
        positions=(head.position,),
    )


def _knocked_out(head: HeadAt, weights: Float[np.ndarray, " key"], key: int) -> SiteEdit:
    """Return the edit that hides a key from a head; its other weights sum to 1 again."""
    row = weights.astype(np.float64)
    row[key] = 0
    row /= max(row.sum(), 1e-12)
    return SiteEdit(
        kind="set",
        site=f"{head.path}.weights",
        value=row.astype(np.float32),
        heads=(head.head,),
        positions=(head.position,),
    )
