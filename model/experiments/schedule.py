"""Learning rate schedules, and optimizers on a surface of two parameters.

The schedules are those of `training.schedule`, the optimizers PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.training import descend
from headlight.model.optimization.schedule import SCHEDULES

OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")
BOUND = 3.0
"""The surface is drawn from −3 to 3 in both directions."""


class ScheduleParameters(Parameters):
    """The parameters of `schedule`."""

    steps: int = Field(1000, ge=1, le=10_000, description="Steps of a training run.")
    warmup: int = Field(100, ge=0, le=10_000, description="Steps in which the rate rises.")
    decay: int = Field(
        200, ge=0, le=10_000, description="Steps at the end in which a stable rate falls."
    )
    floor: float = Field(0.1, ge=0.0, le=1.0, description="Factor at the end of the cosine.")
    surface: Literal["ravine", "valley", "saddle"] = Field(
        "ravine",
        description="ravine: (x² + c·y²)/2. valley: Rosenbrock's (1 − x)² + c·(y − x²)². "
        "saddle: (x² − y²)/2 + y⁴/4.",
    )
    curvature: float = Field(20.0, ge=1.0, le=100.0, description="The factor c of the surface.")
    schedule: Literal["constant", "warmup_stable_decay", "cosine", "noam"] = Field(
        "constant", description="How the rate of the optimizers changes, over their own steps."
    )
    optimizer_steps: int = Field(100, ge=1, le=500, description="Steps of each optimizer.")
    sgd_rate: float = Field(
        0.04, ge=1e-5, le=2.0, description="Peak learning rate of SGD and of SGD with momentum."
    )
    adam_rate: float = Field(
        0.1, ge=1e-5, le=2.0, description="Peak learning rate of Adam and AdamW."
    )
    momentum: float = Field(0.9, ge=0.0, le=0.99, description="Of SGD with momentum.")
    weight_decay: float = Field(
        0.1,
        ge=0.0,
        le=1.0,
        description="Of Adam, which adds it to the gradient, and AdamW, which does not.",
    )
    x: float = Field(-2.5, ge=-BOUND, le=BOUND, description="The x that every optimizer starts at.")
    y: float = Field(1.5, ge=-BOUND, le=BOUND, description="The y that every optimizer starts at.")


def cost(parameters: ScheduleParameters) -> Cost:
    """Estimate the cost: 0.6 ms for each step of an optimizer, 1 µs for each factor."""
    steps = len(OPTIMIZERS) * parameters.optimizer_steps
    return Cost(seconds=0.6e-3 * steps + 4e-6 * parameters.steps + 0.05, megabytes=1.0)


N_GRID = 61


def run(parameters: ScheduleParameters) -> Iterator[Arrays]:
    """Compute every schedule, the surface, and the path of every optimizer on it."""
    places = np.linspace(-BOUND, BOUND, N_GRID)
    loss = _surface(parameters)
    x, y = np.meshgrid(places, places)
    yield {
        "schedule": np.array(["constant", *SCHEDULES]),
        "train_step": np.arange(parameters.steps),
        "factor": np.stack(
            [_factors(name, parameters.steps, parameters) for name in ("constant", *SCHEDULES)]
        ),
        "x": places,
        "y": places,
        "surface": loss(torch.from_numpy(np.stack([x, y]))).numpy(),
    }
    # A process imports PyTorch's compiler with its first optimizer, which takes seconds.
    paths = [_path(name, loss, parameters) for name in OPTIMIZERS]
    yield {
        "optimizer": np.array(OPTIMIZERS),
        "optimizer_step": np.arange(parameters.optimizer_steps + 1),
        "rate": _factors(parameters.schedule, parameters.optimizer_steps, parameters),
        "coordinate": np.array(["x", "y"]),
        "path": np.stack(paths),
        "loss": np.stack([loss(torch.from_numpy(path.T.copy())).numpy() for path in paths]),
    }


def _factors(name: str, steps: int, parameters: ScheduleParameters) -> np.ndarray:
    """Return the factors on the peak rate; warmup and decay keep their share of the steps."""
    if name == "constant":
        return np.ones(steps)
    share = steps / parameters.steps
    sizes: dict[str, Any] = {
        "steps": steps,
        "warmup": round(parameters.warmup * share),
        "decay": round(parameters.decay * share),
    }
    if name == "cosine":
        sizes["floor"] = parameters.floor
    return np.array([SCHEDULES[name](step, **sizes) for step in range(steps)])


def _surface(parameters: ScheduleParameters) -> Callable[[Tensor], Tensor]:
    """Return the loss as a function of a tensor whose first axis holds x and y."""
    c = parameters.curvature
    return {
        "ravine": lambda p: (p[0] ** 2 + c * p[1] ** 2) / 2,
        "valley": lambda p: (1 - p[0]) ** 2 + c * (p[1] - p[0] ** 2) ** 2,
        "saddle": lambda p: (p[0] ** 2 - p[1] ** 2) / 2 + p[1] ** 4 / 4,
    }[parameters.surface]


def _path(
    name: str, loss: Callable[[Tensor], Tensor], parameters: ScheduleParameters
) -> np.ndarray:
    """Return the places of an optimizer before its first step and after each: (step, coordinate).

    A path that leaves the float64 range is not a number from there on.
    """
    point = torch.tensor([parameters.x, parameters.y], dtype=torch.float64, requires_grad=True)
    optimizer = _make_optimizer(name, point, parameters)
    peak = optimizer.param_groups[0]["lr"]
    path = [point.detach().numpy().copy()]
    for factor in _factors(parameters.schedule, parameters.optimizer_steps, parameters):
        optimizer.param_groups[0]["lr"] = peak * factor
        list(descend([point], lambda: loss(point), 1, optimizer))
        path.append(point.detach().numpy().copy())
    return np.stack(path)


def _make_optimizer(
    name: str, point: Tensor, parameters: ScheduleParameters
) -> torch.optim.Optimizer:
    decay = parameters.weight_decay
    match name:
        case "sgd":
            return torch.optim.SGD([point], lr=parameters.sgd_rate)
        case "momentum":
            return torch.optim.SGD([point], lr=parameters.sgd_rate, momentum=parameters.momentum)
        case "adam":
            return torch.optim.Adam([point], lr=parameters.adam_rate, weight_decay=decay)
        case _:
            return torch.optim.AdamW([point], lr=parameters.adam_rate, weight_decay=decay)


EXPERIMENT = Experiment(
    id="schedule",
    order=31,
    group="Data and optimizers",
    tab="Schedules",
    title="Schedules and optimizers",
    parameters=ScheduleParameters,
    run=run,
    cost=cost,
    is_streamed=True,
    way_out="choose fewer steps",
)
