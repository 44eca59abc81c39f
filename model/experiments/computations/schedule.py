"""Learning rate schedules, and optimizers on a surface of two parameters.

The schedules are those of `training.schedule`, the optimizers PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.experiments.experiment import Arrays
from headlight.model.experiments.schedule import BOUND, OPTIMIZERS, ScheduleParameters
from headlight.model.training.schedule import SCHEDULES

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
    """The factors on the peak rate; warmup and decay keep their share of `parameters.steps`."""
    if name == "constant":
        return np.ones(steps)
    share = steps / parameters.steps
    sizes = {
        "steps": steps,
        "warmup": round(parameters.warmup * share),
        "decay": round(parameters.decay * share),
    }
    if name == "cosine":
        sizes["floor"] = parameters.floor
    return np.array([SCHEDULES[name](step, **sizes) for step in range(steps)])


def _surface(parameters: ScheduleParameters) -> Callable[[Tensor], Tensor]:
    """The loss as a function of a tensor whose first axis holds x and y."""
    c = parameters.curvature
    return {
        "ravine": lambda p: (p[0] ** 2 + c * p[1] ** 2) / 2,
        "valley": lambda p: (1 - p[0]) ** 2 + c * (p[1] - p[0] ** 2) ** 2,
        "saddle": lambda p: (p[0] ** 2 - p[1] ** 2) / 2 + p[1] ** 4 / 4,
    }[parameters.surface]


def _path(
    name: str, loss: Callable[[Tensor], Tensor], parameters: ScheduleParameters
) -> np.ndarray:
    """The places of an optimizer before its first step and after each: (step, coordinate).

    A path that leaves the float64 range is not a number from there on.
    """
    point = torch.tensor([parameters.x, parameters.y], dtype=torch.float64, requires_grad=True)
    optimizer = _make_optimizer(name, point, parameters)
    peak = optimizer.param_groups[0]["lr"]
    path = [point.detach().numpy().copy()]
    for factor in _factors(parameters.schedule, parameters.optimizer_steps, parameters):
        check()
        optimizer.param_groups[0]["lr"] = peak * factor
        (point.grad,) = torch.autograd.grad(loss(point), point)
        optimizer.step()
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
