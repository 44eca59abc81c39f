"""The cost of the same arithmetic done in different ways, measured when it is asked for.

1. Scores of n queries and n keys: one by one in a loop of Python, and as one matrix product.
2. y = ReLU(x·a + b)·c + x by five kernels that each pass over memory, and in one pass over blocks
   that stay in the processor's cache.
3. Parameters of a mixture of experts: those there are, and those that a token uses.

Times are of this machine and this moment; counts are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters

REPEATS = 3
"""The shortest of so many times is kept: whatever else runs can only make one longer."""
BYTES = 4
BLOCK = 2**14
"""Numbers of a block: 64 KB each of what is read and of what is written."""
PASSES = {"eager": 11, "fused": 2}
"""Numbers that are read from or written to memory for each x.

Eager: x and t; t and t; t and t; t and t; t, x and y. In one pass: x and y.
"""


class CostParameters(Parameters):
    """The parameters of `cost`."""

    n_tokens: int = Field(64, ge=2, le=128, description="Queries and keys of the loop.")
    d_model: int = Field(64, ge=8, le=512, multiple_of=8, description="Width of a token's vector.")
    megabytes: int = Field(16, ge=1, le=64, description="Size of x for the kernels.")
    n_experts: int = Field(8, ge=1, le=256, description="The most experts in a layer.")
    top_k: int = Field(2, ge=1, le=16, description="Experts that a token is sent to.")
    n_layers: int = Field(12, ge=1, le=128, description="Layers of the model with experts.")

    @model_validator(mode="after")
    def _fits(self) -> CostParameters:
        if self.top_k > self.n_experts:
            raise ValueError(f"top_k ({self.top_k}) is more than n_experts ({self.n_experts})")
        return self


def cost(parameters: CostParameters) -> Cost:
    """Estimate the cost: the loop, and three passes over x."""
    p = parameters
    loop = REPEATS * p.n_tokens**2 * p.d_model * 0.15e-6
    kernels = REPEATS * p.megabytes * 0.02
    return Cost(seconds=loop + kernels, megabytes=8.0 * p.megabytes + 10)


def run(parameters: CostParameters) -> Iterator[Arrays]:
    """Measure the loop, then the kernels; count the rest."""
    yield {
        "way": np.array(["loop", "product"]),
        "way_seconds": np.array(_scores(parameters)),
        "multiplications": np.array(parameters.n_tokens**2 * parameters.d_model),
        **_experts(parameters),
    }
    yield _kernels(parameters)


def shortest(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the shortest of several times of some work, in seconds."""
    times = []
    for _ in range(repeats):
        check()
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def loop_scores(queries: list[list[float]], keys: list[list[float]]) -> list[list[float]]:
    """Return the products of all queries and keys, number by number."""
    scores = []
    for query in queries:
        check()
        row = []
        for key in keys:
            total = 0.0
            for at in range(len(query)):
                total += query[at] * key[at]
            row.append(total)
        scores.append(row)
    return scores


def _scores(parameters: CostParameters) -> list[float]:
    """Return the seconds of the scores in a loop and as a product."""
    rng = np.random.default_rng(parameters.seed)
    queries, keys = rng.normal(size=(2, parameters.n_tokens, parameters.d_model))
    lists = queries.tolist(), keys.tolist()
    return [shortest(lambda: loop_scores(*lists)), shortest(lambda: queries @ keys.T, 20)]


A, B, C = 1.5, -0.25, 0.75


def eager(x: Tensor) -> Tensor:
    """Return ReLU(x·a + b)·c + x by five kernels, each of which reads and writes all numbers."""
    return F.relu(x * A + B) * C + x


def fused(x: Tensor) -> Tensor:
    """Return the same, block by block: what a block needs in between stays in the cache."""
    made = torch.empty_like(x)
    scratch = torch.empty(BLOCK)
    for start in range(0, len(x), BLOCK):
        part = x[start : start + BLOCK]
        between = scratch[: len(part)]
        torch.mul(part, A, out=between).add_(B).relu_().mul_(C)
        torch.add(between, part, out=made[start : start + BLOCK])
    return made


def _kernels(parameters: CostParameters) -> dict[str, np.ndarray]:
    """Measure the kernels, and count the bytes that they move."""
    generator = torch.Generator().manual_seed(parameters.seed)
    x = torch.randn(parameters.megabytes * 2**20 // BYTES, generator=generator)
    kernels: dict[str, Callable[[Tensor], Tensor]] = {"eager": eager, "fused": fused}
    seconds = np.array([shortest(partial(kernel, x)) for kernel in kernels.values()])
    traffic = np.array([PASSES[name] * x.nbytes for name in kernels])
    return {
        "kernel": np.array(list(kernels)),
        "kernel_seconds": seconds,
        "traffic": traffic,
        "difference": np.array(
            [(kernel(x) - eager(x)).abs().max().item() for kernel in kernels.values()]
        ),
    }


def _experts(parameters: CostParameters) -> dict[str, np.ndarray]:
    """Count the parameters by the number of experts: attention 4·d², an expert 8·d², the router."""
    d_model = parameters.d_model
    experts = np.arange(1, parameters.n_experts + 1)
    used = np.minimum(experts, parameters.top_k)
    shared = 4 * d_model**2 + experts * d_model
    return {
        "experts": experts,
        "all_parameters": parameters.n_layers * (shared + experts * 8 * d_model**2),
        "active_parameters": parameters.n_layers * (shared + used * 8 * d_model**2),
    }


EXPERIMENT = Experiment(
    id="cost",
    order=22,
    group="Around the model",
    tab="What it costs",
    title="What it costs",
    parameters=CostParameters,
    run=run,
    cost=cost,
    is_streamed=True,
    measures_machine=True,
    way_out="choose fewer tokens, a smaller width or fewer megabytes",
)
