"""A small transformer learns a task twice: with a learning rate that rises first, and at once.

Both runs have equal weights, data and peak rate, and no decay at the end. Gradients are not
clipped, so that nothing but the warm-up restrains the first steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.training import N_FRAMES, frames_of
from headlight.model.transformer import Transformer, initialise

RUNS = ("with", "without")
N_TESTED = 128
N_SYMBOLS = 10
LENGTH = 5


class WarmUp(Parameters):
    """The parameters of `warm_up`."""

    steps: int = Field(250, ge=2, le=600, description="Training steps of each run.")
    warmup: int = Field(60, ge=1, le=600, description="Steps in which the rate rises to its peak.")
    learning_rate: float = Field(0.02, ge=1e-5, le=0.1, description="Peak rate of Adam.")
    norm_place: Literal["post", "pre"] = Field(
        "post", description="post: LN(x + F(x)), as in 2017. pre: x + F(LN(x)), as today."
    )
    n_layers: int = Field(3, ge=1, le=6, description="Layers.")
    d_model: int = Field(32, ge=8, le=48, multiple_of=8, description="Width of a token's vector.")
    batch: int = Field(32, ge=4, le=64, description="New sequences in each step.")


def cost(parameters: WarmUp) -> Cost:
    """Estimate the cost, as measured: 4 ms a layer and step, and its arithmetic."""
    n, d = 2 * LENGTH, parameters.d_model
    work = parameters.n_layers * n * (12 * d**2 + 2 * n * d)
    rows = len(RUNS) * (parameters.steps * 3 * parameters.batch + N_FRAMES * N_TESTED)
    calls = len(RUNS) * (parameters.steps + N_FRAMES) * (4e-3 * parameters.n_layers + 3e-3)
    return Cost(seconds=0.5e-9 * rows * work + calls, megabytes=20.0)


def factor(step: int, warmup: int) -> float:
    """Return the factor on the peak rate in a step, from 0; without a warm-up it is 1."""
    return min(1.0, (step + 1) / warmup)


def run(parameters: WarmUp) -> Iterator[Arrays]:
    """Train both, step by step together; each frame has what was measured since the one before."""
    networks = [_network(parameters) for _ in RUNS]
    optimizers = [
        torch.optim.Adam(network.parameters(), lr=parameters.learning_rate, betas=(0.9, 0.98))
        for network in networks
    ]
    warmups = (parameters.warmup, 1)
    tested = _draw(np.random.default_rng([parameters.seed, 1]), N_TESTED)
    yield {
        "run": np.array(RUNS),
        "frame": np.array([0]),
        "accuracy": np.array([[_accuracy(network, tested)] for network in networks]),
    }
    rng = np.random.default_rng([parameters.seed, 0])
    for steps in frames_of(parameters.steps):
        measured = []
        for step in steps:
            rows = _draw(rng, parameters.batch)
            measured.append(
                [
                    _train(network, optimizer, rows, parameters.learning_rate * factor(step, warm))
                    for network, optimizer, warm in zip(networks, optimizers, warmups, strict=True)
                ]
            )
        loss, update, rate = np.array(measured).transpose(2, 1, 0)
        yield {
            "step": np.array(steps) + 1,
            "loss": loss,
            "update": update,
            "rate": rate,
            "frame": np.array([steps.stop]),
            "accuracy": np.array([[_accuracy(network, tested)] for network in networks]),
        }


def _network(parameters: WarmUp) -> Transformer:
    config = TransformerConfig(
        n_layers=parameters.n_layers,
        n_heads=4,
        d_model=parameters.d_model,
        d_ff=4 * parameters.d_model,
        vocab_size=N_SYMBOLS + 1,
        max_tokens=2 * LENGTH,
        kind="encoder",
        positional="sinusoidal",
        norm_place=parameters.norm_place,
        activation="relu",
    )
    network = Transformer(config).double()
    initialise(network, torch.Generator().manual_seed(parameters.seed))
    return network


def _draw(rng: np.random.Generator, n_rows: int) -> tuple[Tensor, Tensor]:
    """Draw sequences to sort: their symbols with blanks after them, and the sorted symbols."""
    symbols = rng.integers(0, N_SYMBOLS, (n_rows, LENGTH))
    ids = np.concatenate([symbols, np.full_like(symbols, N_SYMBOLS)], axis=1)
    return torch.from_numpy(ids), torch.from_numpy(np.sort(symbols, axis=1))


def _answers(network: Transformer, ids: Tensor) -> Tensor:
    logits: Tensor = network(ids).logits
    return logits[:, -LENGTH:]


def _train(
    network: Transformer, optimizer: torch.optim.Optimizer, rows: tuple[Tensor, Tensor], rate: float
) -> tuple[float, float, float]:
    """Make a step; return the loss before it in bits, the size of the update, and the rate.

    The size is the norm of the change of all weights, relative to their norm.
    """
    check()
    ids, answers = rows
    loss = F.cross_entropy(_answers(network, ids).flatten(0, 1), answers.flatten())
    optimizer.zero_grad()
    loss.backward()
    for group in optimizer.param_groups:
        group["lr"] = rate
    before = [parameter.detach().clone() for parameter in network.parameters()]
    optimizer.step()
    with torch.no_grad():
        pairs = zip(network.parameters(), before, strict=True)
        change = sum((now - then).square().sum() for now, then in pairs)
        size = sum(then.square().sum() for then in before)
    return loss.item() / math.log(2), math.sqrt(float(change) / float(size)), rate


@torch.no_grad()
def _accuracy(network: Transformer, tested: tuple[Tensor, Tensor]) -> float:
    ids, answers = tested
    return (_answers(network, ids).argmax(dim=-1) == answers).double().mean().item()


EXPERIMENT = Experiment(
    id="warm_up",
    order=15,
    group="Learning",
    tab="Warm-up",
    title="Why the learning rate rises first",
    parameters=WarmUp,
    run=run,
    cost=cost,
    is_streamed=True,
    way_out="choose fewer steps, layers or sequences",
)
