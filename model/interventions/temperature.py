"""Divide the scores of attention by a temperature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch

from headlight.model.interventions.intervention import (
    ImpossibleIntervention,
    PlacedIntervention,
    Places,
    SiteEdits,
)


@dataclass(frozen=True, kw_only=True)
class Temperature(PlacedIntervention):
    """Divide the scores by `value` before the softmax: above 1 flattens rows, below sharpens them.

    It divides unscaled scores, if `NoScaling` acts in the same attention.

    Raises:
        ValueError: the value is not positive and finite.
    """

    stage = 3
    value: float

    def __post_init__(self) -> None:
        if not 0 < self.value < math.inf:
            raise ValueError(f"a temperature ({self.value}) must be a positive number")

    @classmethod
    def combined(cls, interventions: Sequence[Temperature], places: Places) -> SiteEdits:
        """Yield an edit for each attention.

        Raises:
            ImpossibleIntervention: an attention has two temperatures.
        """
        values: dict[str, float] = {}
        for temperature in interventions:
            for path in places.attentions(temperature):
                if path in values:
                    raise ImpossibleIntervention(
                        f"{path} has two temperatures, {values[path]:g} and {temperature.value:g}; "
                        "keep one"
                    )
                values[path] = temperature.value
        for path, value in values.items():
            yield f"{path}.scores", partial(torch.div, other=value)
