"""Analyses of attention: its weights, what heads write, and the words that it aligns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from headlight.analyses.analysis import Analysis, Choices, Result
from headlight.forms import Answer, ArraysAnswer, TensorAnswer
from headlight.model.checkpoint.card import aligner_of
from headlight.model.trace import Trace

if TYPE_CHECKING:
    from headlight.model.description import Description
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


class CircuitsAnswer(ArraysAnswer):
    """The QK and OV circuits of each head, by attention and token of the text.

    `.written_ids`, `.written_logits` (head, key, rank): the tokens whose logits the head raises
    most if it attends to the token. `.sought_ids`, `.sought_scores` (head, query, rank): the tokens
    that score highest as keys of the token. `.copying` (head): the sum of the OV circuit's
    eigenvalues over that of their sizes, 1 if the head raises what it attends to. All from weights
    and token embeddings alone: the attention's norm is applied to the embedding, the scale of the
    final norm is that at the last position, positions and earlier layers are left out.
    """

    token_texts: dict[str, str] = Field(description="The texts of all tokens, by id.")
    omitted: dict[str, str] = Field(description="The circuits that do not exist, and the reason.")


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
    is_by_layer = True
    is_in_parts = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_labels import LABELS, head_labels

        return Result(head_labels(trace), {"labels": list(LABELS)})

    def join(self, parts: Mapping[str, Mapping[str, Any]]) -> Result:
        from headlight.model.analysis.head_labels import LABELS

        return replace(super().join(parts), metadata={"labels": list(LABELS)})


class Alignment(Analysis):
    """The source words of each target word."""

    id = "alignment"
    needs = ("*.cross_attention.weights",)
    answer = AlignmentAnswer

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        """Align words by the head that the model's card names, or by the mean of all heads."""
        return aligned(trace, _aligner(trace, model))


def aligned(trace: Trace, aligner: Mapping[str, Any] | None) -> Result:
    """Return the alignment of words by one head, or by the mean of all heads."""
    from headlight.model.analysis.alignment import alignment

    return Result(alignment(trace, aligner), {"aligner": aligner})


class OfOutputs(Analysis):
    """An analysis of what each head adds to the residual stream."""

    also = ("*_attention.gain",)

    def reason_against(self, description: Description) -> str | None:
        from headlight.model.analysis.head_outputs import unknown_outputs

        return unknown_outputs(description)


class ValueWeighted(OfOutputs):
    """Attention weights times the norms of the values."""

    id = "value_weighted"
    needs = ("*_attention.weights", "*_attention.values")

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_outputs import output_weights, value_weighted

        return Result(value_weighted(trace, output_weights(trace, model)))


class HeadOutputs(OfOutputs):
    """The contribution of each head to the residual stream."""

    id = "head_outputs"
    needs = ("*_attention.context",)
    axes = ("head", "query", "d_model")
    is_by_layer = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_outputs import head_outputs, output_weights

        return Result(head_outputs(trace, output_weights(trace, model)))


class HeadNorms(OfOutputs):
    """The norm of the contribution of each head to the residual stream."""

    id = "head_norms"
    needs = ("*_attention.context",)
    is_by_layer = True
    is_in_parts = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_outputs import head_norms, output_weights

        return Result(head_norms(trace, output_weights(trace, model)))


class HeadCircuits(Analysis):
    """The tokens that each head writes, and those that it looks for, from the weights alone."""

    id = "head_circuits"
    phrase = (
        "the tokens that each head writes if it attends to a token of the text (OV), and those "
        "that the token looks for (QK), from the weights alone"
    )
    needs = ("*.residual.after", "*_attention.weights")
    also = ("*_attention.gain",)
    answer = CircuitsAnswer

    def reason_against(self, description: Description) -> str | None:
        """Return the reason why a model's weights do not make circuits; None: they do."""
        from headlight.model.analysis.logit_attribution import normalised_stream

        if reason := description.omitted.get("head_circuits"):
            return reason
        if getattr(description.config, "has_embedding_norm", False):
            return "its embedding and the position are normalised together, so neither can be read"
        if description.config.norm_place == "post":
            return "the model normalises what its parts write, so no head writes to the logits"
        return normalised_stream(description)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_circuits import head_circuits, token_embeddings

        embeddings = token_embeddings(model.weights(), model.config)
        circuits = head_circuits(
            trace, model.graph_weights(), embeddings, model.linear_exit, model.config
        )
        ids = [array.data for name, array in circuits.arrays.items() if name.endswith("_ids")]
        unique = np.unique(np.concatenate([each.reshape(-1) for each in ids]))
        texts = {str(token): model.tokenizer.text_of(int(token)) for token in unique}
        return Result(circuits.arrays, {"token_texts": texts, "omitted": circuits.omitted})


def _aligner(trace: Trace, model: Served) -> dict[str, int]:
    """Return the head that the card names as aligning words best, if the trace holds it."""
    aligner = aligner_of(model.description.card)
    is_held = (
        aligner is not None
        and aligner["layer"] in range(model.config.n_layers)
        and aligner["head"] in (trace.heads or range(model.config.n_heads))
    )
    return aligner if aligner is not None and is_held else {}
