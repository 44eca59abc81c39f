"""Analyses of what heads write: their outputs, the norms of these, and their circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from headlight.analyses.analysis import (
    Analysis,
    Choices,
    Result,
    normalised_stream,
    output_weights,
    unknown_outputs,
)
from headlight.model.config import TransformerConfig
from headlight.model.trace import Trace
from headlight.schemas import ArraysAnswer

if TYPE_CHECKING:
    from headlight.model.served import Description, Served


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


class OfOutputs(Analysis):
    """An analysis of what each head adds to the residual stream."""

    also = ("*_attention.gain",)

    def reason_against(self, description: Description) -> str | None:
        return unknown_outputs(description)


class ValueWeighted(OfOutputs):
    """Attention weights times the norms of the values."""

    id = "value_weighted"
    needs = ("*_attention.weights", "*_attention.values")

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_outputs import value_weighted

        return Result(value_weighted(trace, output_weights(trace, model)))


class HeadOutputs(OfOutputs):
    """The contribution of each head to the residual stream."""

    id = "head_outputs"
    needs = ("*_attention.context",)
    axes = ("head", "query", "d_model")
    is_by_layer = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_outputs import head_outputs

        return Result(head_outputs(trace, output_weights(trace, model)))


class HeadNorms(OfOutputs):
    """The norm of the contribution of each head to the residual stream."""

    id = "head_norms"
    needs = ("*_attention.context",)
    is_by_layer = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_outputs import head_norms

        return Result(head_norms(trace, output_weights(trace, model)))


class HeadCircuits(Analysis):
    """The tokens that each head writes, and those that it looks for, from the weights alone."""

    id = "head_circuits"
    phrase = (
        "the tokens that each head writes if it attends to a token of the text (OV), and those "
        "that the token looks for (QK), from the weights alone"
    )
    needs = ("*.residual.after", "*_attention.weights")
    answer = CircuitsAnswer

    def reason_against(self, description: Description) -> str | None:
        """Return why the weights of a model do not make circuits; None: they do."""
        if description.architecture != "headlight":
            return "it does not offer the weights of its norms"
        if getattr(description.config, "has_embedding_norm", False):
            return "its embedding is normalised together with the position, so neither stands alone"
        return normalised_stream(description)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.head_circuits import head_circuits

        assert isinstance(model.config, TransformerConfig)
        circuits = head_circuits(trace, model.weights(), model.linear_exit, model.config)
        ids = [array.data for name, array in circuits.arrays.items() if name.endswith("_ids")]
        unique = np.unique(np.concatenate([each.reshape(-1) for each in ids]))
        texts = {str(token): model.tokenizer.text_of(int(token)) for token in unique}
        return Result(circuits.arrays, {"token_texts": texts, "omitted": circuits.omitted})
