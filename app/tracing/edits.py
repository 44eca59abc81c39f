"""The edits that a request may ask for, validated, then read into `model.interventions`."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from headlight.model import interventions

MAX_EDITS = 16
MAX_NUMBERS = 256
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0

Number = Annotated[int, Field(ge=0, lt=2**31)]
Numbers = Annotated[list[Number], Field(min_length=1, max_length=MAX_NUMBERS)]
Stack = Literal["encoder", "decoder"]


class _Edit(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    layer: Number | None = Field(None, description="In this layer; without it, in every layer.")


class _AttentionEdit(_Edit):
    where: interventions.Where | None = Field(
        None,
        description="In the self-attention of the encoder or of the decoder, or in "
        "cross-attention; without it, in all that the model has.",
    )


class HeadsOffRequest(_AttentionEdit):
    """Heads that write nothing: their context is 0, their weights stay as they are."""

    kind: Literal["heads_off"]
    heads: Numbers

    def read(self) -> interventions.HeadAblation:
        """The edit that is asked for."""
        return interventions.HeadAblation(
            heads=tuple(self.heads), layer=self.layer, where=self.where
        )


class ExpertsOffRequest(_Edit):
    """Experts that are never chosen: their router logits are −∞, sent as null."""

    kind: Literal["experts_off"]
    experts: Numbers
    where: Stack | None = Field(None, description="In this stack; without it, in both.")

    def read(self) -> interventions.ExpertAblation:
        """The edit that is asked for."""
        return interventions.ExpertAblation(
            experts=tuple(self.experts), layer=self.layer, where=self.where
        )


class NoScalingRequest(_AttentionEdit):
    """Queries times keys, not divided by √d_head."""

    kind: Literal["no_scaling"]

    def read(self) -> interventions.NoScaling:
        """The edit that is asked for."""
        return interventions.NoScaling(layer=self.layer, where=self.where)


class TemperatureRequest(_AttentionEdit):
    """Scores divided by a temperature before the softmax."""

    kind: Literal["temperature"]
    value: float = Field(
        ge=LEAST_TEMPERATURE,
        le=MOST_TEMPERATURE,
        description="1 changes nothing; above it rows even out, below it they sharpen.",
    )

    def read(self) -> interventions.Temperature:
        """The edit that is asked for."""
        return interventions.Temperature(value=self.value, layer=self.layer, where=self.where)


EditRequest = Annotated[
    HeadsOffRequest | ExpertsOffRequest | NoScalingRequest | TemperatureRequest,
    Field(discriminator="kind"),
]
EditRequests = Annotated[list[EditRequest], Field(max_length=MAX_EDITS)]
