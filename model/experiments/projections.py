"""Attention with one projection for all three roles, and with three separate projections.

    shared      softmax(X·W·Wᵀ·Xᵀ/√d_k)·X·W
    separate    softmax(X·W_Q·W_Kᵀ·Xᵀ/√d_k)·X·W_V

Shared scores are symmetric, and of any two tokens one scores itself at least as high as the other:
(xᵢ − xⱼ)·W·Wᵀ·(xᵢ − xⱼ)ᵀ ≥ 0, so sᵢᵢ + sⱼⱼ ≥ 2·sᵢⱼ. Both are trained on a task that needs a
direction: each of six tokens has to find the next one in a circle.

The loss of that task is convex in W·Wᵀ, and turning or mirroring the circle does not change it. So
the best W·Wᵀ is its own mean over all turns, sᵢⱼ depends only on the distance of i and j, and its
eigenvectors are those of a circle. The best has one eigenvalue, that of the first harmonic: tokens
on a circle, sᵢⱼ = r²·cos(π(i − j)/3). `least_loss` is the least of these over r.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from headlight.model.attention.kernels import attention_weights
from headlight.model.experiments.by_hand import Matrix, Token, Vector
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.training import descend

VARIANTS = ("shared", "separate")
N_TOKENS = 8
SEPARATE = ("query_weights", "key_weights", "value_weights")
GIVEN = ("inputs", "shared_weights", *SEPARATE)

Rows = Annotated[list[Vector], Field(min_length=2, max_length=N_TOKENS)]
Tokens = Annotated[list[Token], Field(min_length=2, max_length=N_TOKENS)]


class Projections(Parameters):
    """The parameters of `projections`; numbers that are not given are those of the example."""

    example: Literal["animal", "library", "database", "kitchen"] = Field(
        "animal", description="The tokens, their vectors and the matrices."
    )
    is_scaled: bool = Field(True, description="Whether scores are divided by √d_k.")
    steps: int = Field(200, ge=1, le=1000, description="Training steps of the small task.")
    learning_rate: float = Field(0.1, ge=1e-4, le=1.0, description="Rate of Adam in the task.")
    tokens: Tokens | None = Field(None, description="The tokens.")
    inputs: Rows | None = Field(None, description="X, a vector for each token.")
    shared_weights: Matrix | None = Field(None, description="W, for all three roles.")
    query_weights: Matrix | None = Field(None, description="W_Q, a row for each input dimension.")
    key_weights: Matrix | None = Field(None, description="W_K, a row for each input dimension.")
    value_weights: Matrix | None = Field(None, description="W_V, a row for each input dimension.")

    @model_validator(mode="after")
    def _fits(self) -> Projections:
        for name in GIVEN:
            rows = getattr(self, name)
            if rows is not None and len({len(row) for row in rows}) > 1:
                raise ValueError(f"the rows of {name} have different lengths")
        given = _given(self)
        n_tokens, width = given["inputs"].shape
        for name in GIVEN[1:]:
            if (n_rows := len(given[name])) != width:
                raise ValueError(f"{name} have {n_rows} rows, but inputs have {width} dimensions")
        d_query, d_key = (given[name].shape[1] for name in SEPARATE[:2])
        if d_query != d_key:
            raise ValueError(f"queries have {d_query} dimensions, but keys have {d_key}")
        if self.tokens is not None and len(self.tokens) != n_tokens:
            raise ValueError(f"there are {len(self.tokens)} tokens, but {n_tokens} inputs")
        return self


def cost(parameters: Projections) -> Cost:
    """Estimate the cost: 0.6 ms for each of the steps that two matrices are trained for."""
    return Cost(seconds=1.2e-3 * parameters.steps + 0.05, megabytes=1.0)


@dataclass(frozen=True, kw_only=True)
class Example:
    """The tokens, the vectors and the three matrices of an example."""

    tokens: tuple[str, ...]
    inputs: np.ndarray
    query_weights: np.ndarray
    key_weights: np.ndarray
    value_weights: np.ndarray

    @property
    def shared_weights(self) -> np.ndarray:
        """A matrix that reads from a vector what queries and what keys read."""
        shared: np.ndarray = self.query_weights + self.key_weights
        return shared


def _sentence(
    vectors: Mapping[str, list[float]], *, query: list[list[float]], key: list[list[float]]
) -> Example:
    """Return words of four features: thing, stand-in, action, link; values hold thing and action.

    The columns of queries and keys ask for, and offer, a thing and an action.
    """
    return Example(
        tokens=tuple(vectors),
        inputs=np.array(list(vectors.values())),
        query_weights=np.array(query),
        key_weights=np.array(key),
        value_weights=np.array([[1.0, 0.0], [0.3, 0.0], [0.0, 1.0], [0.0, 0.1]]),
    )


def _animal() -> Example:
    return _sentence(
        {
            "the": [0.1, 0.0, 0.0, 0.3],
            "animal": [1.0, 0.1, 0.0, 0.0],
            "slept": [0.1, 0.0, 1.0, 0.0],
            "because": [0.0, 0.0, 0.2, 1.0],
            "it": [0.1, 1.0, 0.0, 0.0],
            "yawned": [0.1, 0.0, 0.8, 0.1],
        },
        query=[[0.0, 2.0], [3.0, 0.0], [2.0, 0.0], [0.0, 1.0]],
        key=[[3.0, 0.0], [0.3, 0.0], [0.0, 2.0], [0.0, 0.0]],
    )


def _kitchen() -> Example:
    return _sentence(
        {
            "the": [0.1, 0.0, 0.0, 0.3],
            "chef": [1.0, 0.5, 0.0, 0.0],
            "who": [0.2, 0.9, 0.0, 0.2],
            "cooked": [0.0, 0.0, 1.2, 0.0],
            "pasta": [0.8, 0.0, 0.0, 0.0],
            "smiled": [0.0, 0.1, 0.9, 0.0],
        },
        query=[[0.0, 2.0], [2.0, 0.0], [2.0, 0.0], [0.0, 1.0]],
        key=[[2.5, 0.0], [0.5, 0.0], [0.0, 2.5], [0.0, 0.0]],
    )


N_RECORDS = 5


def _records(question: str, records: Mapping[str, tuple[int, int]], asked: int) -> Example:
    """Return a question and five records, with separate parts for what is asked, key and value.

    A part is one of five directions in a plane, as long as 3 in queries and 2 in keys.
    """
    angles = 2 * math.pi * np.arange(N_RECORDS) / N_RECORDS
    codes = np.stack([np.cos(angles), np.sin(angles)], axis=1).round(2)
    none = np.zeros(2)
    rows = [np.concatenate([codes[asked], none, none])]
    rows += [np.concatenate([none, codes[key], codes[value]]) for key, value in records.values()]
    parts = np.eye(6).reshape(3, 2, 6).transpose(0, 2, 1)
    return Example(
        tokens=(question, *records),
        inputs=np.stack(rows),
        query_weights=3 * parts[0],
        key_weights=2 * parts[1],
        value_weights=parts[2],
    )


def _library() -> Example:
    shelves = {
        "Stars": (0, 2),
        "Bread": (1, 4),
        "Rivers": (2, 1),
        "Bridges": (3, 0),
        "Poems": (4, 3),
    }
    return _records("how to bake?", shelves, asked=1)


def _database() -> Example:
    people = {"Mira": (0, 3), "Tomas": (1, 0), "Ines": (2, 4), "Oren": (3, 2), "Lena": (4, 1)}
    return _records("experience?", people, asked=0)


EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {"animal": _animal(), "library": _library(), "database": _database(), "kitchen": _kitchen()}
)


def _given(parameters: Projections) -> dict[str, np.ndarray]:
    """Return the numbers of the request, and those of the example that it does not replace."""
    example = EXAMPLES[parameters.example]
    return {
        name: np.array(rows, dtype=np.float64)
        if (rows := getattr(parameters, name)) is not None
        else getattr(example, name)
        for name in GIVEN
    }


def run(parameters: Projections) -> Iterator[Arrays]:
    """Attend with shared and with separate projections, then train both on the task."""
    given = _given(parameters)
    shared = [given["shared_weights"]] * 3
    attended = {
        name: _attend(given["inputs"], matrices, is_scaled=parameters.is_scaled)
        for name, matrices in zip(
            VARIANTS, (shared, [given[name] for name in SEPARATE]), strict=True
        )
    }
    labels = parameters.tokens or EXAMPLES[parameters.example].tokens
    if len(labels) != len(given["inputs"]):
        labels = tuple(map(str, range(len(given["inputs"]))))
    losses, found = zip(*(_learn(variant, parameters) for variant in VARIANTS), strict=True)
    yield {
        "variant": np.array(VARIANTS),
        "token": np.array(labels),
        **given,
        "shared": given["inputs"] @ given["shared_weights"],
        **{name: attended["separate"][name] for name in ("queries", "keys", "values", "context")},
        "shared_context": attended["shared"]["context"],
        **{
            name: np.stack([attended[variant][name] for variant in VARIANTS])
            for name in ("scores", "weights", "asymmetry")
        },
        "step": np.arange(1, parameters.steps + 1),
        "loss": np.stack(losses),
        "least_loss": np.array(least_loss()),
        "task_weights": np.stack(found),
    }


def _attend(
    inputs: np.ndarray, matrices: list[np.ndarray], *, is_scaled: bool
) -> dict[str, np.ndarray]:
    """Compute attention, and how far its scores are from symmetric."""
    queries, keys, values = (inputs @ matrix for matrix in matrices)
    scores = queries @ keys.T / (math.sqrt(keys.shape[1]) if is_scaled else 1.0)
    weights = attention_weights(torch.from_numpy(scores)).numpy()
    context = weights @ values
    context[np.abs(context) < 1e-12] = 0.0  # of values that cancel, rounding is left
    return {
        "queries": queries,
        "keys": keys,
        "values": values,
        "scores": scores,
        "weights": weights,
        "context": context,
        "asymmetry": np.abs(scores - scores.T).max(),
    }


N_SYMBOLS = 6
"""Tokens of the task, in a circle."""


def _learn(variant: str, parameters: Projections) -> tuple[np.ndarray, np.ndarray]:
    """Train the matrices on the task; return the loss before each step, and the last weights.

    Tokens are one-hot, so X·W is W, and matrices are square: nothing but sharing limits them.
    """
    generator = torch.Generator().manual_seed(parameters.seed)
    shape = (2 if variant == "separate" else 1, N_SYMBOLS, N_SYMBOLS)
    matrices = torch.randn(shape, generator=generator, dtype=torch.float64) / math.sqrt(N_SYMBOLS)
    matrices.requires_grad_()
    optimizer = torch.optim.Adam([matrices], lr=parameters.learning_rate)
    losses = list(descend([matrices], lambda: _loss(matrices), parameters.steps, optimizer))
    weights = _task_scores(matrices.detach()).softmax(dim=-1)
    return np.array(losses), weights.numpy()


def _task_scores(matrices: Float[Tensor, "role symbol d_k"]) -> Float[Tensor, "symbol symbol"]:
    return matrices[0] @ matrices[-1].T


def least_loss() -> float:
    """Return the least loss of the task with a shared matrix, in bits; see the module."""
    squares = np.linspace(0, 4, 4001)  # r²; the least is at 1.2
    angles = np.pi / 3 * (np.arange(N_SYMBOLS) - np.arange(N_SYMBOLS)[:, None])
    scores = squares[:, None, None] * np.cos(angles)
    powers = np.exp(scores)
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return float(-np.log2(weights[:, 0, 1].max()))


def _loss(matrices: Float[Tensor, "role symbol d_k"]) -> Float[Tensor, ""]:
    """Return the mean of −log₂ of the weight that each token gives to the next, in bits."""
    after = (torch.arange(N_SYMBOLS) + 1) % N_SYMBOLS
    loss = torch.nn.functional.cross_entropy(_task_scores(matrices), after)
    bits: Tensor = loss / math.log(2)
    return bits


EXPERIMENT = Experiment(
    id="projections",
    order=2,
    group="Attention",
    tab="Why three projections",
    title="Why three projections",
    parameters=Projections,
    run=run,
    cost=cost,
    way_out="choose fewer steps",
)
