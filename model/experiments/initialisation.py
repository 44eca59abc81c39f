"""The size of numbers layer by layer, by how the weights are drawn, and what a network learns then.

    unit      deviation 1                       xavier    √(2 / (inputs + outputs))
    small     deviation 0.01                    kaiming   √(2 / inputs)

A layer of n inputs multiplies the mean square by n·deviation², and ReLU halves it. Glorot and
Bengio 2010; He et al. 2015.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters, Quantity

SCHEMES = ("unit", "small", "xavier", "kaiming")
N_SHOWN = 512
"""Inputs whose numbers are measured."""
BATCH = 64


class Initialisation(Parameters):
    """The parameters of `initialisation`."""

    n_layers: int = Field(6, ge=1, le=20, description="Layers, with the activation after each.")
    n_inputs: int = Field(10, ge=1, le=256, description="Numbers of an input, drawn from N(0, 1).")
    width: int = Field(100, ge=2, le=256, description="Units of a layer.")
    activation: Literal["relu", "tanh", "none"] = Field("relu", description="After each layer.")
    steps: int = Field(200, ge=1, le=500, description="Training steps of each network.")
    learning_rate: float = Field(1e-3, ge=1e-6, le=1.0, description="Rate of Adam.")


def cost(parameters: Initialisation) -> Cost:
    """Estimate the cost: the training of four networks, 0.5 ns for each multiplication."""
    p = parameters
    weights = p.n_inputs * p.width + p.n_layers * p.width**2
    work = len(SCHEMES) * weights * (3 * BATCH * p.steps + N_SHOWN)
    calls = len(SCHEMES) * p.steps * (0.15e-3 * p.n_layers + 0.4e-3)
    return Cost(seconds=0.5e-9 * work + calls, megabytes=8e-6 * (4 * weights + 1e5))


def deviation(scheme: str, n_inputs: int, n_outputs: int) -> float:
    """Return the standard deviation that a matrix is drawn with."""
    return {
        "unit": 1.0,
        "small": 0.01,
        "xavier": math.sqrt(2 / (n_inputs + n_outputs)),
        "kaiming": math.sqrt(2 / n_inputs),
    }[scheme]


def run(parameters: Initialisation) -> Iterator[Arrays]:
    """Measure and train a network of each scheme, all of equal draws but for their deviation."""
    inputs = _draw(parameters, 0, N_SHOWN, parameters.n_inputs)
    first = {
        "scheme": np.array(SCHEMES),
        "layer": np.arange(parameters.n_layers + 1),
    }
    networks = {scheme: _matrices(scheme, parameters) for scheme in SCHEMES}
    sizes = [_sizes(inputs, networks[scheme], parameters) for scheme in SCHEMES]
    first["deviation"] = np.stack([of[0] for of in sizes])
    first["zeros"] = np.stack([of[1] for of in sizes])
    first["gradient"] = np.stack(
        [_gradients(inputs, networks[scheme], parameters) for scheme in SCHEMES]
    )
    losses = [_train(networks[scheme], parameters) for scheme in SCHEMES]
    yield {**first, "step": np.arange(1, parameters.steps + 1), "loss": np.stack(losses)}


def _draw(parameters: Initialisation, part: int, *shape: int) -> Tensor:
    rng = np.random.default_rng([parameters.seed, part])
    return torch.from_numpy(rng.normal(size=shape))


def _matrices(scheme: str, parameters: Initialisation) -> list[Tensor]:
    """Return the matrices of the layers, and of the output, which is always small enough."""
    widths = [parameters.n_inputs] + [parameters.width] * parameters.n_layers
    layers = [
        _draw(parameters, 1 + at, n_in, n_out) * deviation(scheme, n_in, n_out)
        for at, (n_in, n_out) in enumerate(pairwise(widths))
    ]
    readout = _draw(parameters, 100, parameters.width, 1) / math.sqrt(parameters.width)
    return [*layers, readout]


def _activate(x: Tensor, parameters: Initialisation) -> Tensor:
    if parameters.activation == "none":
        return x
    activated: Tensor = F.relu(x) if parameters.activation == "relu" else torch.tanh(x)
    return activated


def _sizes(
    x: Tensor, matrices: list[Tensor], parameters: Initialisation
) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard deviation of the input and of every layer, and the share of zeros."""
    deviations, zeros = [x.std().item()], [0.0]
    for matrix in matrices[:-1]:
        check()
        x = _activate(x @ matrix, parameters)
        deviations.append(x.std().item())
        zeros.append((x == 0).double().mean().item())
    return np.array(deviations), np.array(zeros)


def _gradients(x: Tensor, matrices: list[Tensor], parameters: Initialisation) -> np.ndarray:
    """Return the root mean square of the output's gradient by the numbers that enter each layer."""
    streams = [x.clone().requires_grad_()]
    for matrix in matrices[:-1]:
        stream = _activate(streams[-1] @ matrix, parameters)
        stream.retain_grad()
        streams.append(stream)
    (streams[-1] @ matrices[-1]).sum().backward()
    return np.array(
        [math.nan if s.grad is None else s.grad.square().mean().sqrt().item() for s in streams]
    )


def _train(matrices: list[Tensor], parameters: Initialisation) -> np.ndarray:
    """Train on a task that is not linear: whether the first two inputs have the same sign.

    Returns the loss before each step, in bits; that of guessing is 1.
    """
    weights = [matrix.clone().requires_grad_() for matrix in matrices]
    optimizer = torch.optim.Adam(weights, lr=parameters.learning_rate)
    rng = np.random.default_rng([parameters.seed, 200])
    losses = []
    for _ in range(parameters.steps):
        check()
        x = torch.from_numpy(rng.normal(size=(BATCH, parameters.n_inputs)))
        labels = (x[:, 0] * x[:, min(1, parameters.n_inputs - 1)] > 0).double()
        hidden = x
        for matrix in weights[:-1]:
            hidden = _activate(hidden @ matrix, parameters)
        loss = F.binary_cross_entropy_with_logits((hidden @ weights[-1])[:, 0], labels)
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.grad = gradient
        optimizer.step()
        losses.append(loss.item() / math.log(2))
    return np.array(losses)


EXPERIMENT = Experiment(
    id="initialisation",
    order=9,
    group="The network",
    tab="Initialisation",
    title="How weights are drawn",
    parameters=Initialisation,
    run=run,
    cost=cost,
    way_out="choose fewer layers, a smaller width or fewer steps",
    quantities={
        "scheme": Quantity(
            "scheme",
            "unit: deviation 1. small: 0.01. xavier: √(2/(inputs + outputs)). kaiming: "
            "√(2/inputs).",
        ),
        "layer": Quantity("layer", "0 is the input, then each layer."),
        "deviation": Quantity(
            "scheme layer", "Standard deviation of the numbers after each layer."
        ),
        "zeros": Quantity("scheme layer", "Share of the numbers that are exactly 0."),
        "gradient": Quantity(
            "scheme layer", "Root mean square of the gradient of the output by each number."
        ),
        "step": Quantity("step", "The training step, from 1.", unit="steps"),
        "loss": Quantity(
            "scheme step", "Cross-entropy before each step; guessing has 1.", unit="bits"
        ),
    },
    see="Every layer is a sum over its inputs, so its numbers grow with the root of how many "
    "there are. With weights of deviation 1 they are about 1.9 after the first layer of 10 "
    "inputs, 15 after the second of 100, and tens of thousands after the sixth; with 0.01 they "
    "vanish. Xavier divides by the root of inputs and outputs, which keeps a network with tanh "
    "level. ReLU throws half of the square away, and Kaiming's factor of 2 puts it back, so that "
    "depth changes nothing. The gradient goes the same way backwards, and the loss shows the "
    "price: the network of too large numbers learns nothing in this time, and the one of too "
    "small ones starts late.",
    field="Transformers draw from a normal distribution of deviation 0.02, or of a root of the "
    "width, and divide the matrices that write into the residual stream by the root of the number "
    "of layers. Norms and residual connections forgive much. Maximal update parametrisation sets "
    "deviation and rate by the width, so that what suits a small model suits a large one.",
    sources={
        "https://proceedings.mlr.press/v9/glorot10a.html": "Glorot and Bengio 2010, Understanding "
        "the difficulty of training deep feedforward neural networks",
        "https://arxiv.org/abs/1502.01852": "He et al. 2015, Delving Deep into Rectifiers",
        "https://arxiv.org/abs/2203.03466": "Yang et al. 2022, Tensor Programs V",
    },
)
