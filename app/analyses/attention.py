"""Analyses of attention weights: rollout, distances, the labels of heads, word alignment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from headlight.analyses.analysis import Analysis, Choices, Result
from headlight.model.trace import Trace
from headlight.schemas import Answer, ArraysAnswer, TensorAnswer

if TYPE_CHECKING:
    from headlight.model.served import Served


class LabelsAnswer(ArraysAnswer):
    """For each attention `.label`, `.label_scores` and `.label_queries`.

    A label is an index into `labels`; the scores have the same order, without the last label.
    """

    labels: list[str]


class AlignmentAnswer(Answer):
    """The alignment of target words with source words."""

    weights: TensorAnswer = Field(description="Each row sums to 1.")
    links: TensorAnswer = Field(description="1 if two words are linked, else 0.")
    aligner: dict[str, int] = Field(
        description="The layer and the head that were read, and the shift: 0 for the row of the "
        "token itself, 1 for the row that predicts it. Empty: the mean over all layers and the "
        "requested heads."
    )


class Rollout(Analysis):
    """Attention multiplied through the layers."""

    id = "rollout"
    needs = ("*.self_attention.weights",)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.rollout import rollout

        return Result(rollout(trace))


class AttentionByDistance(Analysis):
    """Mean weights by distance."""

    id = "attention_by_distance"
    needs = ("*.self_attention.weights",)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.attention_by_distance import attention_by_distance

        return Result(attention_by_distance(trace))


class HeadLabels(Analysis):
    """The behaviour of each head."""

    id = "head_labels"
    needs = ("*_attention.weights",)
    answer = LabelsAnswer

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_labels import LABELS, head_labels

        return Result(head_labels(trace), {"labels": list(LABELS)})


class Alignment(Analysis):
    """The source words of each target word."""

    id = "alignment"
    needs = ("*.cross_attention.weights",)
    answer = AlignmentAnswer

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        """As `Analysis.compute`, by the head that the model's card names, or the mean of all."""
        from headlight.model.analysis.alignment import alignment

        aligner = _aligner(trace, model)
        options: dict[str, Any] = {}
        if aligner:
            layers, heads = [aligner["layer"]], [aligner["head"]]
            options = {"layers": layers, "heads": heads, "shift": aligner["shift"]}
        return Result(alignment(trace, **options), {"aligner": aligner})


def _aligner(trace: Trace, model: Served) -> dict[str, int]:
    """Return the head that the card names as aligning words best, if the trace holds it."""
    figures = model.description.card.metrics.get("alignment")
    head = figures.get("head") if isinstance(figures, Mapping) else None
    if not isinstance(head, Mapping):
        return {}
    aligner: dict[str, Any] = {key: head.get(key) for key in ("layer", "head", "shift")}
    is_held = (
        all(type(number) is int for number in aligner.values())
        and aligner["layer"] in range(model.config.n_layers)
        and aligner["head"] in (trace.heads or range(model.config.n_heads))
        and aligner["shift"] in (0, 1)
    )
    return aligner if is_held else {}
