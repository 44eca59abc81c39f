"""The use of the function between the two matrices of a feed-forward network.

    FFN(x) = f(x·W₁ + b₁)·W₂ + b₂

Without f, two layers are one matrix: (x·W₁ + b₁)·W₂ + b₂ = x·(W₁·W₂) + (b₁·W₂ + b₂). With ReLU the
network is linear between kinks, one for each hidden unit; with GELU it is smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.training import descend

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x,
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
}
"""SiLU is the function inside SwiGLU."""

PLACES = torch.linspace(-3, 3, 121, dtype=torch.float64)
TARGETS: dict[str, Callable[[Tensor], Tensor]] = {
    "wave": lambda x: torch.sin(2 * x),
    "bump": lambda x: torch.exp(-4 * x**2),
    "step": lambda x: torch.sign(x),
    "line": lambda x: x / 2,
}


class FeedForwardParameters(Parameters):
    """The parameters of `feed_forward`."""

    target: Literal["wave", "bump", "step", "line"] = Field(
        "wave", description="The curve to learn: sin 2x, e^(−4x²), the sign of x, or x/2."
    )
    d_ff: int = Field(16, ge=1, le=128, description="Hidden units.")
    steps: int = Field(500, ge=1, le=1500, description="Training steps of each network.")
    learning_rate: float = Field(0.02, ge=1e-5, le=1.0, description="Rate of Adam.")


def cost(parameters: FeedForwardParameters) -> Cost:
    """Estimate the cost: 0.5 ms for each step of a network."""
    return Cost(seconds=0.5e-3 * len(FUNCTIONS) * parameters.steps + 0.02, megabytes=2.0)


def run(parameters: FeedForwardParameters) -> Iterator[Arrays]:
    """Train a network with each function on the curve, and merge the matrices of the first."""
    target = TARGETS[parameters.target](PLACES)
    trained = {name: _train(function, target, parameters) for name, function in FUNCTIONS.items()}
    w1, b1, w2, b2 = trained["none"][0]
    matrix, bias = w1 @ w2, b1 @ w2 + b2
    merged = (PLACES[:, None] @ matrix + bias)[:, 0]
    yield {
        "x": PLACES.numpy(),
        "function": np.array(list(FUNCTIONS)),
        "activation": np.stack([f(PLACES).numpy() for f in FUNCTIONS.values()]),
        "target": target.numpy(),
        "output": np.stack([made.numpy() for _, made in trained.values()]),
        "merged": merged.numpy(),
        "merged_matrix": torch.cat([matrix.flatten(), bias.flatten()]).numpy(),
        "merged_difference": (merged - trained["none"][1]).abs().max().numpy(),
        "kinks": _kinks(*trained["relu"][0][:2]),
        "loss": np.stack([(made - target).square().mean() for _, made in trained.values()]),
    }


def _network(x: Tensor, weights: list[Tensor], function: Callable[[Tensor], Tensor]) -> Tensor:
    w1, b1, w2, b2 = weights
    output: Tensor = (function(x[:, None] @ w1 + b1) @ w2 + b2)[:, 0]
    return output


def _train(
    function: Callable[[Tensor], Tensor], target: Tensor, parameters: FeedForwardParameters
) -> tuple[list[Tensor], Tensor]:
    """Return the trained weights and the network's curve.

    The units start at places all over the curve, as x·w + b = 0 at x = −b/w.
    """
    rng = np.random.default_rng(parameters.seed)
    d_ff = parameters.d_ff
    slopes = rng.choice([-1.0, 1.0], d_ff) * rng.uniform(0.5, 1.5, d_ff)
    drawn = [
        slopes[None],
        -slopes * rng.uniform(-3, 3, d_ff),
        rng.normal(0, 1 / math.sqrt(d_ff), (d_ff, 1)),
        np.zeros(1),
    ]
    weights = [torch.from_numpy(each).requires_grad_() for each in drawn]
    optimizer = torch.optim.Adam(weights, lr=parameters.learning_rate)

    def loss() -> Tensor:
        return (_network(PLACES, weights, function) - target).square().mean()

    list(descend(weights, loss, parameters.steps, optimizer))
    last = [weight.detach() for weight in weights]
    return last, _network(PLACES, last, function)


def _kinks(w1: Tensor, b1: Tensor) -> np.ndarray:
    """Return the places where a hidden unit with ReLU begins: x·w + b = 0."""
    places: np.ndarray = torch.sort(-b1 / w1[0]).values.numpy()
    return places


EXPERIMENT = Experiment(
    id="feed_forward",
    order=10,
    group="The network",
    tab="Feed-forward",
    title="Why a function between two matrices",
    parameters=FeedForwardParameters,
    run=run,
    cost=cost,
    way_out="choose fewer steps",
)
