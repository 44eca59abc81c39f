"""The gradient of the last state by every earlier one: recurrent networks and attention.

In a recurrent network h_t = f(W·h_{t−1} + U·x_t + b) the gradient ∂h_T/∂h_t is a product of T − t
Jacobians. In a linear one with W of spectral radius ρ it falls or grows as ρ^(T−t) (Pascanu et al.
2013). Attention reaches every token in one step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from headlight.model.attention.layer import MultiHeadAttention
from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters


class Recurrence(Parameters):
    """The parameters of `recurrence`."""

    length: int = Field(100, ge=2, le=200, description="Tokens of the sequence.")
    width: int = Field(24, ge=2, le=48, description="Width of a state.")
    spectral_radius: float = Field(
        0.9,
        ge=0.1,
        le=2.0,
        description="Spectral radius ρ of the recurrent matrix, a random rotation times ρ.",
    )
    forget_bias: float = Field(
        1.0,
        ge=-5.0,
        le=5.0,
        description="Bias of the gate that keeps the state: the forget gate of the LSTM, the "
        "update gate of the GRU.",
    )


def cost(parameters: Recurrence) -> Cost:
    """Estimate the cost: 4 cells and attention's draws; the LSTM holds 12 numbers per state."""
    per_step = 200e-6 + 3e-9 * parameters.width**3
    numbers = parameters.length * (2 * parameters.width) ** 2 * 12
    return Cost(seconds=20 * parameters.length * per_step, megabytes=8e-6 * numbers)


CELLS = ("linear", "tanh", "lstm", "gru", "attention")
ATTENTION_DRAWS = 16
"""Sequences whose gradients are averaged: each token's depends on its own attention weight."""
INPUT_DEVIATION = 0.5
"""Standard deviation of each input's contribution to a unit."""


def run(parameters: Recurrence) -> Iterator[Arrays]:
    """Compute the gradients of every cell by autograd."""
    n_tokens, width = parameters.length, parameters.width
    torch_rng = torch.Generator().manual_seed(parameters.seed)
    inputs = torch.randn(n_tokens, width, generator=torch_rng, dtype=torch.float64)
    rotation = _rotation(width, torch_rng)
    drawn = torch.randn(4, 4, width, width, generator=torch_rng, dtype=torch.float64)
    gradients = [
        _recurrent_gradients(_make_cell(kind, rotation, drawn[place], parameters), kind, inputs)
        for place, kind in enumerate(CELLS[:-1])
    ]
    attention = _make_attention(parameters)
    sequences = torch.randn(
        ATTENTION_DRAWS, n_tokens, width, generator=torch_rng, dtype=torch.float64
    )
    of_draws = np.stack([_attention_gradients(attention, each) for each in sequences])
    gradients.append(np.exp(np.log(of_draws).mean(axis=0)))
    lengths = np.arange(1, n_tokens + 1)
    yield {
        "cell": np.array(CELLS),
        "distance": np.arange(n_tokens),
        "gradient": np.stack(gradients),
        "power": parameters.spectral_radius ** np.arange(n_tokens),
        "length": lengths,
        "waiting_steps": np.stack([lengths] * 4 + [np.ones_like(lengths)]),
        "multiplications": np.stack([_multiplications(kind, lengths, width) for kind in CELLS]),
    }


def _rotation(width: int, generator: torch.Generator) -> Float[Tensor, "width width"]:
    """Return a random orthogonal matrix: all its eigenvalues have modulus 1."""
    drawn = torch.randn(width, width, generator=generator, dtype=torch.float64)
    q, r = torch.linalg.qr(drawn)
    rotation: Tensor = q * r.diagonal().sign()  # the signs make q unique
    return rotation


class LinearCell(nn.Module):
    """h_t = W·h_{t−1} + U·x_t: a recurrent network without an activation function."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight_hh = nn.Parameter(torch.empty(width, width, dtype=torch.float64))
        self.weight_ih = nn.Parameter(torch.empty(width, width, dtype=torch.float64))

    def forward(
        self, x: Float[Tensor, "batch width"], state: Float[Tensor, "batch width"]
    ) -> Float[Tensor, "batch width"]:
        """Return the next state."""
        return state @ self.weight_hh.T + x @ self.weight_ih.T


def _make_cell(
    kind: str, rotation: Tensor, drawn: Float[Tensor, "gate width width"], parameters: Recurrence
) -> nn.Module:
    """Return a cell whose recurrent matrices are the rotation times the spectral radius."""
    width = parameters.width
    classes: dict[str, Callable[..., nn.RNNCellBase]] = {
        "tanh": nn.RNNCell,
        "lstm": nn.LSTMCell,
        "gru": nn.GRUCell,
    }
    cell: LinearCell | nn.RNNCellBase = (
        LinearCell(width) if kind == "linear" else classes[kind](width, width, dtype=torch.float64)
    )
    n_gates = cell.weight_hh.shape[0] // width
    with torch.no_grad():
        for name, parameter in cell.named_parameters():
            if name.startswith("bias"):
                parameter.zero_()
        cell.weight_hh.copy_((parameters.spectral_radius * rotation).repeat(n_gates, 1))
        scale = INPUT_DEVIATION / math.sqrt(width)
        cell.weight_ih.copy_(scale * drawn[:n_gates].flatten(0, 1))
        # PyTorch's order of the gates is input, forget, cell, output, and reset, update, new: the
        # second keeps the state in both.
        if kind in ("lstm", "gru"):
            cell.get_parameter("bias_ih")[width : 2 * width] = parameters.forget_bias
    return cell


def _recurrent_gradients(
    cell: nn.Module, kind: str, inputs: Float[Tensor, "token width"]
) -> Float[np.ndarray, " distance"]:
    """Return ‖∂s_T/∂s_t‖/√n by the distance T − t, of states s with n numbers; 1 at distance 0.

    The state of the LSTM is hidden state and cell state together. Row i of a batch that repeats one
    sequence gives row i of every Jacobian, so one backward pass gives them all.
    """
    width = inputs.shape[-1]
    n_numbers = 2 * width if kind == "lstm" else width
    state = torch.zeros(n_numbers, n_numbers, dtype=inputs.dtype)
    states = []
    for x in inputs:
        check()
        repeated = x.expand(n_numbers, -1)
        if kind == "lstm":
            state = torch.cat(cell(repeated, tuple(state.split(width, dim=-1))), dim=-1)
        else:
            state = cell(repeated, state)
        states.append(state)
    jacobians = torch.autograd.grad(state.diagonal().sum(), states)
    norms = torch.stack([jacobian.norm() for jacobian in jacobians]) / math.sqrt(n_numbers)
    return norms.flip(0).numpy()


def _make_attention(parameters: Recurrence) -> MultiHeadAttention:
    """Make one head of causal self-attention, with matrices that keep the variance."""
    width = parameters.width
    config = TransformerConfig(
        n_layers=1,
        n_heads=1,
        d_model=width,
        d_ff=width,
        vocab_size=1,
        max_tokens=parameters.length,
        positional="none",
    )
    attention = MultiHeadAttention(config).double()
    generator = torch.Generator().manual_seed(parameters.seed)
    with torch.no_grad():
        for matrix in attention.parameters():
            matrix.normal_(0, 1 / math.sqrt(width), generator=generator)
    return attention


def _attention_gradients(
    attention: MultiHeadAttention, inputs: Float[Tensor, "token width"]
) -> Float[np.ndarray, " distance"]:
    """Return ‖∂y_T/∂x_t‖/√d by the distance T − t, of x + Attention(x), as in a transformer."""
    check()
    width = inputs.shape[-1]
    # A leaf for each token and row of the batch, as for the recurrent cells.
    x = inputs.expand(width, -1, -1).clone().requires_grad_()
    last = (x + attention(x))[:, -1]
    (jacobian,) = torch.autograd.grad(last.diagonal().sum(), x)
    norms: Tensor = jacobian.norm(dim=(0, 2)) / math.sqrt(width)
    return norms.flip(0).numpy()


def _multiplications(kind: str, lengths: np.ndarray, width: int) -> np.ndarray:
    """Count the multiplications of the matrix products for a whole sequence."""
    counts: np.ndarray
    if kind == "attention":  # four projections; products with keys and with values, all pairs
        counts = lengths * 4 * width**2 + lengths**2 * 2 * width
    else:
        n_gates = {"linear": 1, "tanh": 1, "lstm": 4, "gru": 3}[kind]
        counts = lengths * n_gates * 2 * width**2
    return counts


EXPERIMENT = Experiment(
    id="recurrence",
    order=7,
    group="The network",
    tab="Why not recurrence",
    title="Why attention replaced recurrence",
    parameters=Recurrence,
    run=run,
    cost=cost,
    way_out="choose a shorter sequence or a smaller width",
)
