"""Declares `balance`: a mixture of experts trained with and without the balance loss."""

from __future__ import annotations

from pydantic import Field, model_validator

from headlight.model.experiments.experiment import (
    Cost,
    Experiment,
    Parameters,
    Quantity,
    Source,
    computation,
)

N_FRAMES = 40
N_TOKENS = 192
"""Tokens of a step: one block of the balance loss (`moe`)."""


class Balance(Parameters):
    """The parameters of `balance`."""

    coefficient: float = Field(
        0.2, ge=0.0, le=1.0, description="Weight of the balance loss in the second run."
    )
    n_experts: int = Field(8, ge=2, le=16, description="Experts.")
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


EXPERIMENT = Experiment(
    id="balance",
    title="Experts with and without a balance loss",
    parameters=Balance,
    run=computation("balance"),
    cost=cost,
    is_streamed=True,
    way_out="choose fewer steps, fewer experts or a smaller width",
    quantities={
        "run": Quantity(axes="run", help="Without the balance loss, and with it."),
        "expert": Quantity(axes="expert", help="The number of the expert."),
        "cluster": Quantity(axes="cluster", help="The number of the cluster of tokens."),
        "step": Quantity(axes="step", unit="steps", help="The training step, from 1."),
        "loss": Quantity(axes="run step", help="Mean squared error of the task, before the step."),
        "balance_loss": Quantity(
            axes="run step", help="n_experts·Σ f·P, before the step; 1 if balanced."
        ),
        "frame": Quantity(axes="frame", unit="steps", help="Steps made before the frame."),
        "load": Quantity(
            axes="run frame expert", help="Share of the choices that fall on the expert."
        ),
        "probability": Quantity(
            axes="run frame expert", help="Mean probability that the router gives the expert."
        ),
        "cluster_load": Quantity(
            axes="run frame cluster expert", help="As `load`, for the tokens of each cluster."
        ),
        "effective_experts": Quantity(
            axes="run frame",
            unit="experts",
            help="Exponential of the entropy of the loads: as many equally loaded experts.",
        ),
        "tested_balance_loss": Quantity(
            axes="run frame", help="The balance loss on tokens that are not trained on."
        ),
    },
    see="All tokens have a common part, so an untrained router sends most of them to the same few "
    "experts. Only experts that are chosen learn, and without the balance loss they stay the ones "
    "that are chosen: some take several times their share and others end with no token at all. "
    "The balance loss spreads the load to almost equal shares. Compare the losses of both runs: "
    "idle experts can cost accuracy, and so can a large coefficient. The map shows which clusters "
    "each expert takes.",
    field="Balanced experts matter because each runs on a device of its own: the fullest decides "
    "the time, and an unused one is wasted memory. The auxiliary loss of the Switch Transformer "
    "is the common remedy. Since it competes with the task, newer models balance otherwise: "
    "DeepSeek-V3 adds a bias to the router's scores that follows the loads and has no gradient.",
    sources=(
        Source(
            title="Shazeer et al. 2017, Outrageously Large Neural Networks, section 4",
            url="https://arxiv.org/abs/1701.06538",
        ),
        Source(
            title="Fedus et al. 2021, Switch Transformers, section 2.2",
            url="https://arxiv.org/abs/2101.03961",
        ),
        Source(
            title="Wang et al. 2024, Auxiliary-Loss-Free Load Balancing Strategy",
            url="https://arxiv.org/abs/2408.15664",
        ),
    ),
)
