"""Change the scores of attention before their softmax."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from headlight.schemas.edit_kinds.form import AttentionEdit

LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0


class NoScalingRequest(AttentionEdit):
    """Do not divide the products of queries and keys by √d_head."""

    asks = "headlight.model.interventions.no_scaling:NoScaling"
    kind: Literal["no_scaling"]


class TemperatureRequest(AttentionEdit):
    """Divide the attention scores by a temperature before the softmax."""

    asks = "headlight.model.interventions.temperature:Temperature"
    kind: Literal["temperature"]
    value: float = Field(
        ge=LEAST_TEMPERATURE,
        le=MOST_TEMPERATURE,
        description="1 changes nothing; a higher value evens rows out, a lower one sharpens them.",
    )
