"""Analyses of layers: the residual stream, the routing of experts, the rounding of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from headlight.analyses.analysis import Analysis, Choices, Result
from headlight.forms import Answer, TensorAnswer
from headlight.model.trace import Trace

if TYPE_CHECKING:
    from headlight.model.description import Description
    from headlight.model.served import Served


class SensitivityAnswer(Answer):
    """The change of the predictions when one part's weights are rounded."""

    divergence: TensorAnswer = Field(
        description="Mean KL of the rounded model's distribution from the model's own, in bits, by "
        "bits and part."
    )
    loss: TensorAnswer = Field(description="Of the rounded model on the text, in bits per token.")
    loss_change: TensorAnswer
    bits: TensorAnswer
    parts: list[str] = Field(description="Of the model; `*` is all of them together.")


class ResidualStream(Analysis):
    """Norms of the stream and of what is added to it, and the statistics that layer norms read."""

    id = "residual_stream"
    phrase = (
        "norms of the stream and of the contributions to it, and the input statistics of the layer "
        "norms"
    )
    needs = ("*.layers.*.residual.*", "*.layers.*.output")
    is_in_parts = True

    def reason_against(self, description: Description) -> str | None:
        """Return the reason why a part's output is not what it adds to the stream; None: it is."""
        names = {site.name for site in description.sites}
        written = {name.rpartition(".residual.")[0] for name in names if ".residual." in name}
        if any(f"{layer}.residual.middle" not in names for layer in written):
            return (
                "attention and feed-forward network read the same stream, so there is none between "
                "them"
            )
        if all(
            f"{layer}.feed_forward.output" in names or f"{layer}.experts.output" in names
            for layer in written
        ):
            return description.omitted.get("sum")
        return "the output of a layer's feed-forward network cannot be read"

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.residual_stream import residual_stream

        config = model.config
        return Result(residual_stream(trace, norm=config.norm, norm_place=config.norm_place))

    def part(self, trace: Trace, model: Served, layer: str) -> Mapping[str, Any]:
        from headlight.model.analysis.residual_stream import layer_norms

        return layer_norms(trace, layer, model.config.norm, model.config.norm_place)

    def join(self, parts: Mapping[str, Mapping[str, Any]]) -> Result:
        from headlight.model.analysis.residual_stream import joined

        return Result(joined(parts))


class Routing(Analysis):
    """The share of the tokens that each expert takes."""

    id = "routing"
    needs = ("*.experts.router_probs", "*.experts.expert_indices")

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.routing import routing

        return Result(routing(trace))


class QuantizationSensitivity(Analysis):
    """The change of the predictions when one part's weights are rounded."""

    id = "quantization_sensitivity"
    phrase = (
        "the change of the predictions, in KL and in loss, when one part's weights are rounded to "
        "8, 4 or 2 bits"
    )
    needs = ("logits",)
    answer = SensitivityAnswer
    has_passes = True
    takes_edits = False

    def reason_against(self, description: Description) -> str | None:
        """Return the reason why a model's weights cannot be rounded; None: they can."""
        if description.quantization is not None:
            return "its weights are quantized already"
        if description.matrices:
            return None
        return "its weights are not named; add it again"

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.quantization_sensitivity import (
            parts_to_round,
            quantization_sensitivity,
            rounded_passes,
        )

        parts = parts_to_round(model)
        arrays = quantization_sensitivity(
            trace, parts, rounded_passes(trace, model), is_encoder=model.config.kind == "encoder"
        )
        return Result(arrays, {"parts": parts})
