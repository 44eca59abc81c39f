"""The size of numbers and of gradients layer by layer, by how the weights are drawn.

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


class Initialisation(Parameters):
    """The parameters of `initialisation`."""

    n_layers: int = Field(6, ge=1, le=20, description="Layers, with the activation after each.")
    n_inputs: int = Field(10, ge=1, le=256, description="Numbers of an input, drawn from N(0, 1).")
    width: int = Field(100, ge=2, le=256, description="Units of a layer.")
    activation: Literal["relu", "tanh", "none"] = Field("relu", description="After each layer.")


def cost(parameters: Initialisation) -> Cost:
    """Estimate the cost: four networks forwards and back, 0.5 ns for each multiplication."""
    p = parameters
    weights = p.n_inputs * p.width + p.n_layers * p.width**2
    seconds = 0.5e-9 * 3 * len(SCHEMES) * weights * N_SHOWN + 0.01
    return Cost(seconds=seconds, megabytes=8e-6 * (4 * weights + 1e5))


def deviation(scheme: str, n_inputs: int, n_outputs: int) -> float:
    """Return the standard deviation that a matrix is drawn with."""
    return {
        "unit": 1.0,
        "small": 0.01,
        "xavier": math.sqrt(2 / (n_inputs + n_outputs)),
        "kaiming": math.sqrt(2 / n_inputs),
    }[scheme]


def run(parameters: Initialisation) -> Iterator[Arrays]:
    """Measure a network of each scheme, all of equal draws but for their deviation."""
    inputs = _draw(parameters, 0, N_SHOWN, parameters.n_inputs)
    networks = [_matrices(scheme, parameters) for scheme in SCHEMES]
    sizes = [_sizes(inputs, network, parameters) for network in networks]
    yield {
        "scheme": np.array(SCHEMES),
        "layer": np.arange(parameters.n_layers + 1),
        "deviation": np.stack(sizes),
        "gradient": np.stack([_gradients(inputs, network, parameters) for network in networks]),
    }


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


def _sizes(x: Tensor, matrices: list[Tensor], parameters: Initialisation) -> np.ndarray:
    """Return the standard deviation of the input and of every layer."""
    deviations = [x.std().item()]
    for matrix in matrices[:-1]:
        check()
        x = _activate(x @ matrix, parameters)
        deviations.append(x.std().item())
    return np.array(deviations)


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


EXPERIMENT = Experiment(
    id="initialisation",
    order=9,
    group="The network",
    tab="Initialisation",
    title="How weights are drawn",
    parameters=Initialisation,
    run=run,
    cost=cost,
    way_out="choose fewer layers or a smaller width",
    quantities={
        "scheme": Quantity("scheme", "How weights are drawn; see the formulas."),
        "layer": Quantity("layer", "0 is the input, then each layer."),
        "deviation": Quantity("scheme layer", "Deviation of the numbers after each layer."),
        "gradient": Quantity("scheme layer", "Root mean square of the gradient by each number."),
    },
    see="Every layer is a sum over its inputs, so its numbers grow with the root of how many "
    "there are. With weights of deviation 1 they are about 1.9 after the first layer of 10 "
    "inputs, 15 after the second of 100, and tens of thousands after the sixth; with 0.01 they "
    "vanish. Xavier divides by the root of inputs and outputs, which keeps a network with tanh "
    "level. ReLU throws half of the square away, and Kaiming's factor of 2 puts it back, so that "
    "depth changes nothing. The gradient goes the same way backwards: where it explodes no step is "
    "small enough, and where it vanishes nothing is learned.",
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
