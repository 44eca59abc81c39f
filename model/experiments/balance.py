"""A mixture of experts trained with and without the balance loss.

The tokens come from clusters, each with its own linear map that the experts have to learn. All
tokens have a common part, which makes the untrained router prefer a few experts.

Both runs have equal weights and data; the loss of one adds coefficient · n_experts·Σ f_e·P_e (Fedus
et al. 2021, section 2.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.distributions import entropy
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.training import N_FRAMES, frames_of
from headlight.model.moe import BLOCK_POSITIONS, BLOCK_ROWS, Experts, load_balance_loss

N_TOKENS = 192
"""Tokens of a step: one block of the balance loss (`moe`)."""


class Balance(Parameters):
    """The parameters of `balance`."""

    coefficient: float = Field(
        0.2, ge=0.0, le=1.0, description="Weight of the balance loss in the second run."
    )
    n_experts: int = Field(8, ge=2, le=16, description="The router chooses among them.")
    top_k: int = Field(
        2,
        ge=1,
        le=4,
        description="Experts that each token is routed to. With 1 its weight is always 1, so the "
        "router learns nothing from the task.",
    )
    n_clusters: int = Field(8, ge=1, le=16, description="Kinds of tokens.")
    d_model: int = Field(16, ge=4, le=32, description="Width of a token's vector.")
    steps: int = Field(200, ge=1, le=1000, description="Training steps of each run.")
    learning_rate: float = Field(0.01, ge=1e-4, le=0.1, description="Rate of Adam.")
    common: float = Field(
        3.0,
        ge=0.0,
        le=5.0,
        description="Size of the part that all tokens have in common, relative to the part of "
        "their cluster. It makes the untrained router prefer the same experts for every token.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Balance:
        if self.top_k > self.n_experts:
            raise ValueError(f"top_k ({self.top_k}) must be at most n_experts ({self.n_experts})")
        return self


def cost(parameters: Balance) -> Cost:
    """Estimate the cost: two runs, whose time is mostly that of calling the experts."""
    n_routed = N_TOKENS * parameters.top_k
    step = 2e-3 + 1e-3 * parameters.n_experts + 12e-9 * n_routed * parameters.d_model**2
    numbers = n_routed * parameters.d_model * 40 + 16 * parameters.n_experts * parameters.d_model**2
    return Cost(seconds=2 * (parameters.steps + N_FRAMES) * step, megabytes=8e-6 * numbers + 5)


SPREAD = 0.3
"""Standard deviation of the tokens of a cluster around its centre, whose components have 1."""


class Tokens(NamedTuple):
    """Tokens, what the experts shall make of them, and the cluster of each."""

    x: Tensor
    y: Tensor
    cluster: Tensor


class Clusters:
    """The distribution of the tokens: centres of clusters, and a linear map of each."""

    def __init__(self, parameters: Balance) -> None:
        rng = np.random.default_rng([parameters.seed, 0])
        n, d = parameters.n_clusters, parameters.d_model
        self.centres = rng.normal(size=(n, d)) + parameters.common * rng.normal(size=d)
        self.maps = rng.normal(size=(n, d, d)) / np.sqrt(d)

    def draw(self, rng: np.random.Generator) -> Tokens:
        """Draw 6 rows of 32 tokens, the block that the balance loss is computed on."""
        shape = (BLOCK_ROWS, BLOCK_POSITIONS)
        cluster = rng.integers(0, len(self.centres), shape)
        x = self.centres[cluster] + SPREAD * rng.normal(size=(*shape, self.centres.shape[1]))
        y = np.einsum("rtd,rtde->rte", x, self.maps[cluster])
        return Tokens(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(cluster))


def make_experts(parameters: Balance) -> Experts:
    """Return the router and its experts in float64, drawn from the seed."""
    d = parameters.d_model
    config = TransformerConfig(
        n_layers=1,
        n_heads=1,
        d_model=d,
        d_ff=d,
        vocab_size=1,
        max_tokens=BLOCK_POSITIONS,
        positional="none",
        moe=ExpertsConfig(n_experts=parameters.n_experts, top_k=parameters.top_k, layers=(0,)),
    )
    experts = Experts(config).double()
    generator = torch.Generator().manual_seed(parameters.seed)
    with torch.no_grad():
        for parameter in experts.parameters():
            if parameter.ndim == 1:
                parameter.zero_()
                continue
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(drawn / d**0.5)
    return experts


class Run:
    """One of the two runs: the experts and their optimizer."""

    def __init__(self, parameters: Balance, coefficient: float) -> None:
        self.coefficient = coefficient
        self.experts = make_experts(parameters)
        self._rate = parameters.learning_rate
        self._optimizer: torch.optim.Optimizer | None = None

    def train(self, tokens: Tokens) -> tuple[float, float]:
        """Make one step; return the loss of the task and the balance loss before it."""
        check()
        if self._optimizer is None:
            self._optimizer = torch.optim.Adam(self.experts.parameters(), lr=self._rate)
        output, balance = self.experts(tokens.x)
        loss = F.mse_loss(output, tokens.y)
        self._optimizer.zero_grad()
        (loss + self.coefficient * balance).backward()
        self._optimizer.step()
        return loss.item(), balance.item()

    @torch.no_grad()
    def routing(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Return the router's probabilities (token, expert) and choices (token, top_k)."""
        probs = self.experts.router(tokens.x.flatten(0, 1)).softmax(dim=-1)
        return probs, probs.topk(self.experts.top_k, dim=-1).indices


def run(parameters: Balance) -> Iterator[Arrays]:
    """Train both runs side by side; the first frame shows them untrained."""
    clusters = Clusters(parameters)
    tested = clusters.draw(np.random.default_rng([parameters.seed, 1]))
    runs = [Run(parameters, 0.0), Run(parameters, parameters.coefficient)]
    yield {
        "run": np.array(["without", "with"]),
        "expert": np.arange(parameters.n_experts),
        "cluster": np.arange(parameters.n_clusters),
        **_frame(runs, tested, parameters, 0),
    }
    rng = np.random.default_rng([parameters.seed, 2])
    for steps in frames_of(parameters.steps):
        losses = []
        for _ in steps:
            tokens = clusters.draw(rng)
            losses.append([each.train(tokens) for each in runs])
        made = np.array(losses)  # step, run, which
        yield {
            "step": np.array(steps) + 1,
            "loss": made[..., 0].T,
            **_frame(runs, tested, parameters, steps.stop),
        }


def _frame(
    runs: list[Run], tested: Tokens, parameters: Balance, step: int
) -> dict[str, np.ndarray]:
    """Return the loads on tokens that are not trained on."""
    loads = [_loads(*each.routing(tested), tested.cluster.flatten(), parameters) for each in runs]
    frame = {name: np.stack([each[name] for each in loads])[:, None] for name in loads[0]}
    return {"frame": np.array([step]), **frame}


def _loads(
    probs: Float[Tensor, "token expert"],
    indices: Int[Tensor, "token top_k"],
    cluster: Int[Tensor, " token"],
    parameters: Balance,
) -> dict[str, np.ndarray]:
    n_experts = parameters.n_experts
    chosen = F.one_hot(indices, n_experts).sum(dim=1).double() / parameters.top_k
    by_cluster = torch.zeros(parameters.n_clusters, n_experts, dtype=torch.float64)
    by_cluster.index_add_(0, cluster, chosen)
    counts = cluster.bincount(minlength=parameters.n_clusters).clamp(min=1)
    load = chosen.mean(dim=0)
    return {
        "load": load.numpy(),
        "cluster_load": (by_cluster / counts[:, None]).numpy(),
        "effective_experts": entropy(load, "nats").exp().numpy(),
        "tested_balance_loss": load_balance_loss(probs, indices).numpy(),
    }


EXPERIMENT = Experiment(
    id="balance",
    order=12,
    group="The network",
    tab="Balance",
    title="Experts with and without a balance loss",
    parameters=Balance,
    run=run,
    cost=cost,
    is_streamed=True,
    way_out="choose fewer steps, fewer experts or a smaller width",
)
