"""Quantisation by formula: a row of real weights in 2 to 8 bits.

    scale = (most − least) / (2^bits − 1)       zero = round(−least / scale)
    q = round(w / scale) + zero                 w ≈ scale · (q − zero)

Least and most are those of the row, or of the whole matrix, and 0 lies between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.shipped import shipped

MODEL = "stories"
BITS = range(2, 9)
PLACES = {
    "queries": "self_attention.query_projection",
    "keys": "self_attention.key_projection",
    "values": "self_attention.value_projection",
    "output": "self_attention.output_projection",
    "expert": "experts.experts.0.up_projection",
}


class Rounding(Parameters):
    """The parameters of `rounding`; nothing is drawn, so the seed changes nothing."""

    matrix: Literal["queries", "keys", "values", "output", "expert"] = Field(
        "queries", description="Of the model stories."
    )
    layer: int = Field(0, ge=0, le=3, description="Its layer.")
    row: int = Field(0, ge=0, le=191, description="The row of the matrix that is worked out.")
    bits: int = Field(4, ge=2, le=8, description="Of each weight; a float32 has 32.")
    per: Literal["row", "tensor"] = Field(
        "row", description="What shares a scale and a zero point."
    )


def run(parameters: Rounding) -> Iterator[Arrays]:
    """Round the row by the formula, and measure the error by bits, for both ways to share."""
    name = f"decoder.layers.{parameters.layer}.{PLACES[parameters.matrix]}.weight"
    matrix = shipped(MODEL).model.get_parameter(name).detach().double().numpy()
    row = matrix[parameters.row]
    ranged = row if parameters.per == "row" else matrix
    scale, zero = grid(ranged, parameters.bits)
    whole, restored = rounded(row, scale, zero, parameters.bits)
    yield {
        "weight": row,
        "whole": whole.astype(np.int64),
        "restored": restored,
        "scale": np.array(scale),
        "zero": np.array(zero),
        "extreme": np.array([ranged.min(), ranged.max()]),
        "bits": np.array(BITS),
        "error": np.array(
            [[error(row, *grid(of, bits), bits) for bits in BITS] for of in (row, matrix)]
        ),
        "size": np.array(np.sqrt(np.square(row).mean())),
    }


def grid(weights: np.ndarray, bits: int) -> tuple[float, int]:
    """Return the scale and the zero point of weights that are not all 0."""
    least, most = min(0.0, weights.min()), max(0.0, weights.max())
    scale = (most - least) / (2**bits - 1)
    return float(scale), round(-least / scale)


def rounded(
    row: Float[np.ndarray, " weight"], scale: float, zero: int, bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the whole numbers of a row, and the weights that they are restored to."""
    whole = np.clip(np.round(row / scale) + zero, 0, 2**bits - 1)
    return whole, scale * (whole - zero)


def error(row: Float[np.ndarray, " weight"], scale: float, zero: int, bits: int) -> float:
    """Return the root mean square of what rounding changes."""
    return float(np.sqrt(np.square(rounded(row, scale, zero, bits)[1] - row).mean()))


EXPERIMENT = Experiment(
    id="rounding",
    order=26,
    group="Around the model",
    tab="Fewer bits",
    title="Fewer bits for each weight",
    parameters=Rounding,
    run=run,
    cost=lambda _: Cost(seconds=0.5, megabytes=60.0),
    way_out="choose another row",
)
