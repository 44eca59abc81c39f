"""Declares `recurrence`: gradients by distance of recurrent networks and of attention."""

from __future__ import annotations

from pydantic import Field

from headlight.model.experiments.experiment import (
    Cost,
    Experiment,
    Parameters,
    Quantity,
    Source,
    computation,
)


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
    """Estimate the cost: 14 cells and attention's draws; the LSTM holds 12 numbers per state."""
    per_step = 200e-6 + 3e-9 * parameters.width**3
    numbers = parameters.length * (2 * parameters.width) ** 2 * 12
    return Cost(seconds=32 * parameters.length * per_step, megabytes=8e-6 * numbers)


EXPERIMENT = Experiment(
    id="recurrence",
    title="Why attention replaced recurrence",
    parameters=Recurrence,
    run=computation("recurrence"),
    cost=cost,
    is_streamed=True,
    way_out="choose a shorter sequence or a smaller width",
    quantities={
        "cell": Quantity(axes="cell", help="The networks that are compared."),
        "distance": Quantity(axes="distance", unit="tokens", help="Tokens back from the last."),
        "gradient": Quantity(
            axes="cell distance",
            help="Frobenius norm of the Jacobian of the last state by the state that many tokens "
            "back, divided by that of an identity matrix. Of attention: of the last output by "
            "that token's input, the geometric mean over several drawn sequences.",
        ),
        "power": Quantity(
            axes="distance", help="ρ to the power of the distance, the law of the linear network."
        ),
        "radius": Quantity(axes="radius", help="Other spectral radii."),
        "tanh_by_radius": Quantity(
            axes="radius distance", help="As `gradient`, of the tanh network by spectral radius."
        ),
        "length": Quantity(axes="length", unit="tokens", help="Lengths of a sequence."),
        "waiting_steps": Quantity(
            axes="cell length",
            unit="steps",
            help="Steps that must wait for each other: one a token if each state needs the one "
            "before, one in all for attention.",
        ),
        "multiplications": Quantity(
            axes="cell length",
            unit="multiplications",
            help="Multiplications of the matrix products for a sequence.",
        ),
    },
    see="Recurrent networks lost to attention for two reasons. They hardly learn from what stands "
    "far back, as the gradient has to pass through every state between: below a spectral radius "
    "of 1, that of a linear or tanh network shrinks exponentially with the distance. And each "
    "state waits for the one before it, so many cores do not make them faster. "
    "Above 1 the linear network's gradient explodes. Tanh saturates, which holds it back: at "
    "the default settings it still shrinks at 1.2, about keeps its size at 1.5 and grows at 2. "
    "Raise the forget bias, and the gates of LSTM and GRU keep the state: at 5 their gradient "
    "is larger than attention's even at the far end, but they then keep every token alike, and "
    "the steps still wait for each other. With attention every earlier token is one step "
    "away: its gradient is small, as many tokens share the weight, but does not fall with the "
    "distance, and no step waits for another.",
    field="Attention pays for this with a cost that grows with the square of the length. Gated "
    "linear recurrences and state-space models such as Mamba keep a state of constant size, let "
    "no nonlinearity stand between two states, and so can be computed in parallel by a scan. "
    "Several large models combine a few attention layers with many such layers.",
    sources=(
        Source(
            title="Pascanu et al. 2013, On the difficulty of training recurrent neural networks",
            url="https://arxiv.org/abs/1211.5063",
        ),
        Source(
            title="Vaswani et al. 2017, Attention Is All You Need, table 1",
            url="https://arxiv.org/abs/1706.03762",
        ),
        Source(
            title="Gu and Dao 2023, Mamba: Linear-Time Sequence Modeling",
            url="https://arxiv.org/abs/2312.00752",
        ),
        Source(
            title="De et al. 2024, Griffin: Mixing Gated Linear Recurrences with Local Attention",
            url="https://arxiv.org/abs/2402.19427",
        ),
    ),
)
