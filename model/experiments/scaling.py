"""Dot products by width, and softmax's gradient with and without the factor 1/√d.

The dot product of two vectors of d independent components of variance σ² has variance d·σ⁴. Its
softmax saturates as d grows, and its gradient vanishes. Vaswani et al. 2017, section 3.2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from headlight.model.cancellation import check
from headlight.model.distributions import entropy
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters


class Scaling(Parameters):
    """The parameters of `scaling`."""

    width: int = Field(1024, ge=1, le=2048, description="The greatest width d of the vectors.")
    n_samples: int = Field(
        200, ge=50, le=500, description="Queries that are drawn, each with keys of its own."
    )
    n_keys: int = Field(16, ge=2, le=32, description="Keys that each query is compared with.")
    deviation: float = Field(
        1.0, ge=0.1, le=3.0, description="Standard deviation σ of the components."
    )
    scores: list[Annotated[float, Field(ge=-1000, le=1000)]] = Field(
        [10.0, 5.0, 1.0],
        min_length=2,
        max_length=32,
        description="Scores whose softmax is shown with each divisor.",
    )
    divisors: list[Annotated[float, Field(ge=0.01, le=1000)]] = Field(
        [1.0, 5.0, 25.0],
        min_length=1,
        max_length=8,
        description="Numbers that the scores are divided by before the softmax.",
    )


def run(parameters: Scaling) -> Iterator[Arrays]:
    """Draw queries and keys of every width, and measure their products and softmaxes."""
    widths = widths_up_to(parameters.width)
    products = _products(widths, parameters)
    measured = [_measure(*pair) for pair in zip(products, map(int, widths), strict=True)]
    shown = np.array(parameters.scores) / np.array(parameters.divisors)[:, None]
    weights = softmax(shown)
    yield {
        "width": widths,
        "scaled": np.array(["no", "yes"]),
        **{
            name: np.stack([arrays[name] for arrays in measured], axis=-1)
            for name in ("variance", "entropy", "greatest_weight", "gradient", "example")
        },
        "expected_variance": np.stack(
            [widths * parameters.deviation**4, np.full(len(widths), parameters.deviation**4)]
        ),
        "divisor": np.array(parameters.divisors),
        "scores": np.array(parameters.scores),
        "weights": weights,
        "weights_gradient": jacobian_norm(weights),
    }


def widths_up_to(greatest: int) -> np.ndarray:
    """Return the powers of two below the greatest width, and that width."""
    powers = 2 ** np.arange(13)
    return np.append(powers[powers < greatest], greatest)


def softmax(scores: Float[np.ndarray, "*rows key"]) -> Float[np.ndarray, "*rows key"]:
    """Return the softmax over the last axis, in float64."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: np.ndarray = powers / powers.sum(axis=-1, keepdims=True)
    return weights


def jacobian_norm(weights: Float[np.ndarray, "*rows key"]) -> Float[np.ndarray, "*rows"]:
    """Return the Frobenius norm of ∂softmax/∂scores = diag(p) − p·pᵀ.

    Its square is Σpᵢ² − 2·Σpᵢ³ + (Σpᵢ²)²: the diagonal is pᵢ − pᵢ², other elements are −pᵢ·pⱼ.
    """
    squares = (weights**2).sum(axis=-1)
    norms: np.ndarray = np.sqrt(np.maximum(0, squares - 2 * (weights**3).sum(axis=-1) + squares**2))
    return norms


def _measure(products: Float[np.ndarray, "sample key"], width: int) -> dict[str, np.ndarray]:
    """Return the statistics of one width, each by whether scores are divided by √d."""
    scores = np.stack([products, products / np.sqrt(width)])
    weights = softmax(scores)
    return {
        "variance": scores.var(axis=(1, 2)),
        "entropy": entropy(weights, "bits").mean(axis=-1),
        "greatest_weight": weights.max(axis=-1).mean(axis=-1),
        "gradient": jacobian_norm(weights).mean(axis=-1),
        "example": weights[:, 0],
    }


def _products(
    widths: Int[np.ndarray, " width"], parameters: Scaling
) -> Float[np.ndarray, "width sample key"]:
    """Return dot products of random queries and keys; narrower vectors are the first components."""
    rng = np.random.default_rng(parameters.seed)
    n_keys, deviation = parameters.n_keys, parameters.deviation
    starts = np.concatenate([[0], widths[:-1]])
    products = []
    for _ in range(parameters.n_samples):
        check()
        query = rng.normal(0, deviation, parameters.width)
        keys = rng.normal(0, deviation, (n_keys, parameters.width))
        products.append(np.add.reduceat(keys * query, starts, axis=1).cumsum(axis=1))
    return np.stack(products, axis=1).transpose(2, 1, 0)


def cost(parameters: Scaling) -> Cost:
    """Estimate the cost: 50 ns for each component, and 13 arrays of all products by width."""
    products = parameters.n_samples * parameters.n_keys
    n_widths = len(widths_up_to(parameters.width))
    seconds = 50e-9 * products * parameters.width + 0.05
    return Cost(seconds=seconds, megabytes=8e-6 * 13 * n_widths * products)


EXPERIMENT = Experiment(
    id="scaling",
    order=4,
    group="Attention",
    tab="Why √d",
    title="Why attention divides by √d",
    parameters=Scaling,
    run=run,
    cost=cost,
    way_out="choose a smaller width, fewer samples or fewer keys",
)
