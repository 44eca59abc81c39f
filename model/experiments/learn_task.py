"""Declares `learn_task`: a small network learns a task while it is watched."""

from __future__ import annotations

from typing import Literal

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
"""Frames after the one before the first step."""

N_TESTED = 128
"""Sequences that the accuracy is measured on; none of them is trained on."""

SYMBOLS = "abcdefghijklmnop"


class LearnTask(Parameters):
    """The parameters of `learn_task`."""

    task: Literal["copy", "reverse", "sort", "induction", "addition"] = Field(
        "reverse",
        description="The answer: the same symbols, in reverse order, sorted, the symbol that "
        "followed each query, or the sum of two numbers.",
    )
    model: Literal["transformer", "rnn", "lstm"] = Field(
        "transformer", description="The network; recurrent states are twice as wide as d_model."
    )
    positional: Literal["sinusoidal", "learned", "rotary", "none"] = Field(
        "rotary", description="The positional encoding of the transformer."
    )
    is_causal: bool = Field(
        True,
        description="Whether a token of the transformer sees only itself and earlier ones. The "
        "mask alone tells a token something about its position.",
    )
    length: int = Field(
        5,
        ge=2,
        le=12,
        description="Symbols to read. In addition: digits of both numbers and a plus, so at least "
        "3, and an even length counts as one less.",
    )
    n_symbols: int = Field(
        10,
        ge=2,
        le=len(SYMBOLS),
        description="Different symbols; the induction task needs as many as its length. Addition "
        "has ten digits.",
    )
    n_layers: int = Field(2, ge=1, le=3, description="Layers.")
    n_heads: int = Field(4, ge=1, le=4, description="Attention heads in a layer.")
    d_model: int = Field(32, ge=8, le=48, multiple_of=8, description="Width of a token's vector.")
    steps: int = Field(800, ge=1, le=1000, description="Training steps.")
    batch: int = Field(48, ge=4, le=64, description="New sequences in each step.")
    learning_rate: float = Field(5e-3, ge=1e-5, le=0.1, description="Peak rate of AdamW.")

    @model_validator(mode="after")
    def _fits(self) -> LearnTask:
        if self.d_model % self.n_heads or (self.d_model // self.n_heads) % 2:
            raise ValueError(
                f"n_heads ({self.n_heads}) must divide d_model ({self.d_model}) into even widths"
            )
        if self.task == "induction" and self.n_symbols < self.length:
            raise ValueError(
                f"induction needs length ({self.length}) different symbols, more than n_symbols "
                f"({self.n_symbols})"
            )
        if self.task == "addition" and self.length < 3:
            raise ValueError(f"addition needs a length of at least 3, not {self.length}")
        return self


def cost(parameters: LearnTask) -> Cost:
    """Estimate the cost of the training steps and of the frames; of the default, 24 s measured."""
    n_tokens = 2 * parameters.length
    d_model, n_layers = parameters.d_model, parameters.n_layers
    is_lstm = parameters.model == "lstm"
    if parameters.model == "transformer":
        work = n_layers * n_tokens * (8 * d_model**2 + 2 * n_tokens * d_model)
        calls = 4e-3 * n_layers
    else:
        n_gates = 4 if is_lstm else 1
        work = n_layers * n_tokens * n_gates * 6 * d_model**2
        calls = 0.15e-3 * n_layers * n_tokens * (2 if is_lstm else 1)
    rows = parameters.steps * 3 * parameters.batch + (N_FRAMES + 1) * N_TESTED
    seconds = rows * work * 0.3e-9 + (parameters.steps + N_FRAMES) * (calls + 2e-3)
    if parameters.model == "transformer":  # its many small operations, above their arithmetic
        seconds *= 1.6
    numbers = N_TESTED * n_tokens * n_layers * (30 * d_model + 8 * parameters.n_heads * n_tokens)
    return Cost(seconds=seconds, megabytes=8e-6 * numbers + 5)


EXPERIMENT = Experiment(
    id="learn_task",
    title="Watch a network learn a task",
    parameters=LearnTask,
    run=computation("learn_task"),
    cost=cost,
    is_streamed=True,
    way_out="choose fewer steps, a smaller batch, a shorter sequence or a smaller network",
    quantities={
        "token": Quantity(axes="key", help="One tested sequence: what is read, then the places."),
        "target": Quantity(axes="answer", help="Its right answers."),
        "n_parameters": Quantity(axes="", help="Trained numbers of the network."),
        "step": Quantity(axes="step", unit="steps", help="The training step, from 1."),
        "loss": Quantity(
            axes="step", unit="bits", help="Cross-entropy of each step's sequences, before it."
        ),
        "frame": Quantity(axes="frame", unit="steps", help="Steps made before the frame."),
        "accuracy": Quantity(
            axes="frame", help="Share of right answers, on sequences that are not trained on."
        ),
        "sequence_accuracy": Quantity(
            axes="frame", help="Share of sequences whose answers are all right."
        ),
        "prediction": Quantity(
            axes="frame answer", help="The likeliest answers for the shown sequence."
        ),
        "probability": Quantity(axes="frame answer", help="The probability of these answers."),
        "attention": Quantity(
            axes="frame layer head query key",
            help="Attention weights on the shown sequence; a recurrent network has none.",
        ),
    },
    see="At first no head has a pattern that fits the task and the answers are guesses. Then "
    "the loss falls off a plateau within a few steps, and at the same steps a pattern appears "
    "in the attention: a diagonal for copy, an anti-diagonal for reverse, often shared by several "
    "heads, each of which has some of its places. Without positions the transformer cannot tell "
    "the places apart, and reverse fails: completely if every token sees every other, and partly "
    "with a causal mask. A recurrent network knows the order, but has to pass the whole sequence "
    "through one state, so it learns more slowly.",
    field="Such sudden transitions are studied as the formation of circuits. Induction heads, "
    "which look up what followed an earlier occurrence, appear together with the ability to learn "
    "from the context. Decoders without positional encoding do learn some order from the causal "
    "mask. Most large models use rotary positions. Addition remains hard: the order and the "
    "encoding of the digits decide how far it generalises to longer numbers.",
    sources=(
        Source(
            title="Olsson et al. 2022, In-context Learning and Induction Heads",
            url="https://arxiv.org/abs/2209.11895",
        ),
        Source(
            title="Haviv et al. 2022, Transformer Language Models without Positional Encodings "
            "Still Learn Positional Information",
            url="https://arxiv.org/abs/2203.16634",
        ),
        Source(
            title="Su et al. 2021, RoFormer: Rotary Position Embedding",
            url="https://arxiv.org/abs/2104.09864",
        ),
        Source(
            title="McLeish et al. 2024, Transformers Can Do Arithmetic with the Right Embeddings",
            url="https://arxiv.org/abs/2405.17399",
        ),
    ),
)
