"""Layer norm, batch norm and RMS norm of the same numbers.

layer norm    (x − mean of the row) / √(variance of the row + ε)
batch norm    (x − mean of the column) / √(variance of the column + ε)
RMS norm      x / √(mean square of the row + ε)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from headlight.model.experiments.experiment import Arrays, Experiment, Parameters

Number = Annotated[float, Field(ge=-1e6, le=1e6)]
Row = Annotated[list[Number], Field(min_length=2, max_length=16)]
Rows = Annotated[list[Row], Field(min_length=1, max_length=16)]

INPUTS = [[1.0, 2.0, 4.0, 9.0], [0.5, -1.0, 3.0, 5.5], [2.0, 0.0, 1.0, 20.0]]
NORMS = ("layer", "batch", "rms")


class Norms(Parameters):
    """The parameters of `norms`; nothing is drawn, so the seed changes nothing."""

    epsilon: float = Field(1e-5, ge=1e-12, le=1.0, description="ε, which keeps the root above 0.")
    inputs: Rows | None = Field(None, description="A batch: a row for each token.")

    @model_validator(mode="after")
    def _fits(self) -> Norms:
        if self.inputs is not None and len({len(row) for row in self.inputs}) > 1:
            raise ValueError("the rows of inputs have different lengths")
        return self


def layer_norm(
    x: Float[np.ndarray, "token feature"], epsilon: float
) -> Float[np.ndarray, "token feature"]:
    """Normalise each row by its own mean and variance."""
    made: np.ndarray = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(
        x.var(axis=1, keepdims=True) + epsilon
    )
    return made


def batch_norm(
    x: Float[np.ndarray, "token feature"], epsilon: float
) -> Float[np.ndarray, "token feature"]:
    """Normalise each column by the mean and the variance of the batch."""
    return layer_norm(x.T, epsilon).T


def rms_norm(
    x: Float[np.ndarray, "token feature"], epsilon: float
) -> Float[np.ndarray, "token feature"]:
    """Divide each row by its root mean square."""
    made: np.ndarray = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + epsilon)
    return made


FUNCTIONS = {"layer": layer_norm, "batch": batch_norm, "rms": rms_norm}


def run(parameters: Norms) -> Iterator[Arrays]:
    """Normalise the given batch."""
    inputs = np.array(INPUTS if parameters.inputs is None else parameters.inputs, dtype=np.float64)
    yield {
        "inputs": inputs,
        "norm": np.array(NORMS),
        "normalised": np.stack([FUNCTIONS[name](inputs, parameters.epsilon) for name in NORMS]),
        "token_mean": inputs.mean(axis=1),
        "token_deviation": inputs.std(axis=1),
        "feature_mean": inputs.mean(axis=0),
        "feature_deviation": inputs.std(axis=0),
    }


EXPERIMENT = Experiment(
    id="norms",
    order=11,
    group="The network",
    tab="Norms",
    title="Layer norm against batch norm",
    parameters=Norms,
    run=run,
    way_out="give fewer rows",
)
