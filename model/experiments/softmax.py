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
from headlight.model.experiments.experiment import Arrays, Experiment, Parameters, Quantity
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
    quantities={
        "score": Quantity("score", "The scores, shifted.", unit="score"),
        "normalised": Quantity("score", "Each score divided by their sum; null if that is 0."),
        "untempered": Quantity("score", "The softmax at temperature 1."),
        "weights": Quantity("score", "The softmax at the chosen temperature."),
        "temperature": Quantity("temperature", "Temperatures, from 0.1 to 20."),
        "by_temperature": Quantity("score temperature", "The softmax at each."),
        "entropy": Quantity("temperature", "The entropy of the softmax at each.", unit="bits"),
        "shift": Quantity("shift", "Numbers added to the given scores.", unit="score"),
        "normalised_by_shift": Quantity("score shift", "The same by shift; null if the sum is 0."),
        "softmax_by_shift": Quantity("score shift", "The softmax at each shift."),
    },
    see="Scores of 10, 5 and 1 become plain shares of 0.625, 0.313 and 0.063; the softmax gives "
    "0.993, 0.007 and nearly 0, because it turns differences into factors: a lead of 5 is a "
    "factor of e⁵ = 148. Make a score negative: while the sum stays positive its plain share "
    "is negative and the others together exceed 1; once the sum is negative the order turns "
    "round, and at a sum of 0 there are no shares at all. A negative weight would subtract "
    "what a token hands over. Trained scores are of both signs, so attention needs a function"
    " that is positive for every score and never turns the order round. The exponential is "
    "the one for which only differences count. Shift all scores: the softmax stays as it is, "
    "while plain shares even out or explode. The temperature sets how sharp the softmax is: "
    "towards 0 the largest score takes all, and at a high one all weights are equal.",
    field="The softmax stays the standard in attention and at the output. Sparsemax and entmax "
    "give exact zeros. Linear attention replaces the exponential by a product of features that "
    "can be summed in advance, and models with a sigmoid in place of the softmax, with no sum "
    "over keys, train about as well once their bias is set right.",
    sources={
        "https://arxiv.org/abs/1602.02068": "Martins and Astudillo 2016, From Softmax to Sparsemax",
        "https://arxiv.org/abs/2006.16236": "Katharopoulos et al. 2020, Transformers are RNNs",
        "https://arxiv.org/abs/2409.04431": "Ramapuram et al. 2024, Theory, Analysis, and Best "
        "Practices for Sigmoid Self-Attention",
    },
)
