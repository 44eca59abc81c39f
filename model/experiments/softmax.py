"""The softmax next to plain normalisation: negative scores, shifts, temperature.

softmax    e^(sᵢ/T) / Σ e^(sⱼ/T)          plain    sᵢ / Σ sⱼ
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from jaxtyping import Float
from pydantic import Field

from headlight.model.distributions import entropy
from headlight.model.experiments.experiment import Arrays, Experiment, Parameters
from headlight.model.experiments.scaling import softmax

TEMPERATURES = np.geomspace(0.1, 20, 47)
SHIFTS = np.linspace(-20, 20, 81)
NEAR = np.geomspace(0.02, 1.5, 12)
"""Distances from the shift at which scores sum to 0; shares change fast there."""


class Softmax(Parameters):
    """The parameters of `softmax`; nothing is drawn, so the seed changes nothing."""

    scores: list[Annotated[float, Field(ge=-1000, le=1000)]] = Field(
        [10.0, 5.0, 1.0], min_length=2, max_length=16, description="Separated by commas."
    )
    temperature: float = Field(
        1.0, ge=0.05, le=50.0, description="The scores are divided by it before the softmax."
    )
    shift: float = Field(0.0, ge=-20.0, le=20.0, description="Added to every score.")


def normalised(scores: Float[np.ndarray, "*rows score"]) -> Float[np.ndarray, "*rows score"]:
    """Divide scores by their sum; not a number if the sum is 0."""
    total = scores.sum(axis=-1, keepdims=True)
    shares: np.ndarray = np.divide(
        scores, total, out=np.full_like(scores, np.nan), where=np.abs(total) > 1e-12
    )
    return shares


def run(parameters: Softmax) -> Iterator[Arrays]:
    """Compute both of the chosen scores, and by temperature and shift."""
    scores = np.array(parameters.scores) + parameters.shift
    by_temperature = softmax(scores / TEMPERATURES[:, None])
    pole = -np.mean(parameters.scores)
    near = np.concatenate([pole - NEAR, pole + NEAR])
    shifts = np.unique(np.concatenate([SHIFTS, near[np.abs(near) <= SHIFTS[-1]]]))
    shifted = np.array(parameters.scores) + shifts[:, None]
    yield {
        "score": scores,
        "normalised": normalised(scores),
        "untempered": softmax(scores),
        "weights": softmax(scores / parameters.temperature),
        "temperature": TEMPERATURES,
        "by_temperature": by_temperature.T,
        "entropy": entropy(by_temperature, "bits"),
        "shift": shifts,
        "normalised_by_shift": normalised(shifted).T,
        "softmax_by_shift": softmax(shifted).T,
    }


EXPERIMENT = Experiment(
    id="softmax",
    order=3,
    group="Attention",
    tab="Why softmax",
    title="Why a softmax and not plain shares",
    parameters=Softmax,
    run=run,
    way_out="choose fewer scores",
)
