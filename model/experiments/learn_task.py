"""A small network learns a task while its loss, accuracy and attention are recorded.

A sequence is read, then answered all at once at places that hold a blank:

    reverse    c a b d _ _ _ _   →   d b a c

In the induction task the places hold queries instead: the answer is the symbol that followed the
query. Data, weights and arithmetic are float64 and seeded, so equal parameters give equal curves on
every machine until rounding errors of 1e-16 have grown, which takes longer than a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.training import N_FRAMES, frames_of
from headlight.model.optimization.optimizers import make_optimizers
from headlight.model.optimization.schedule import warmup_stable_decay
from headlight.model.transformer import Transformer, initialise

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
    warmup: int = Field(
        20, ge=0, le=500, description="Steps in which the rate rises; at most half of all. 0: none."
    )
    norm_place: Literal["post", "pre"] = Field(
        "pre", description="post: LN(x + F(x)), as in 2017. pre: x + F(LN(x)), as today."
    )

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


PLUS, BLANK = "+", "_"
MAX_GRADIENT = 1.0


class Task(NamedTuple):
    """The vocabulary of a task, and the shape of its sequences."""

    name: str
    vocabulary: list[str]
    n_read: int
    n_answers: int

    def draw(
        self, rng: np.random.Generator, n_rows: int
    ) -> tuple[Int[np.ndarray, "row token"], Int[np.ndarray, "row answer"]]:
        """Draw the token ids to read, and those of the answers, at the last places."""
        if self.name == "addition":
            return self._draw_sums(rng, n_rows)
        n_symbols = len(self.vocabulary) - 1
        if self.name == "induction":
            return self._draw_queries(rng, n_rows, n_symbols)
        symbols = rng.integers(0, n_symbols, (n_rows, self.n_read))
        answers = {"copy": symbols, "reverse": symbols[:, ::-1], "sort": np.sort(symbols, axis=1)}[
            self.name
        ]
        return np.concatenate([symbols, np.full_like(symbols, n_symbols)], axis=1), answers.copy()

    def _draw_queries(
        self, rng: np.random.Generator, n_rows: int, n_symbols: int
    ) -> tuple[np.ndarray, np.ndarray]:
        symbols = rng.permuted(np.tile(np.arange(n_symbols), (n_rows, 1)), axis=1)[:, : self.n_read]
        places = rng.integers(0, self.n_read - 1, (n_rows, self.n_answers))
        queries = np.take_along_axis(symbols, places, axis=1)
        answers = np.take_along_axis(symbols, places + 1, axis=1)
        return np.concatenate([symbols, queries], axis=1), answers

    def _draw_sums(self, rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        n_digits = self.n_answers - 1
        numbers = rng.integers(0, 10**n_digits, (n_rows, 2))
        powers = 10 ** np.arange(n_digits, -1, -1)
        first, second, total = (
            number[:, None] // powers % 10 for number in (*numbers.T, numbers.sum(axis=1))
        )
        plus, blank = (np.full((n_rows, 1), self.vocabulary.index(sign)) for sign in (PLUS, BLANK))
        blanks = blank.repeat(self.n_answers, axis=1)
        symbols = np.concatenate([first[:, 1:], plus, second[:, 1:], blanks], axis=1)
        return symbols, total


def make_task(parameters: LearnTask) -> Task:
    """Return the task of the parameters."""
    if parameters.task == "addition":
        n_digits = (parameters.length - 1) // 2
        vocabulary = [*"0123456789", PLUS, BLANK]
        return Task("addition", vocabulary, 2 * n_digits + 1, n_digits + 1)
    vocabulary = [*SYMBOLS[: parameters.n_symbols], BLANK]
    return Task(parameters.task, vocabulary, parameters.length, parameters.length)


class RecurrentNetwork(nn.Module):
    """Token embeddings, a recurrent network, and a projection to the vocabulary.

    Args:
        kind: ``rnn``, with tanh, or ``lstm``.
        vocab_size: tokens of the vocabulary.
        d_model: width of the embeddings; states are twice as wide.
        n_layers: recurrent layers.
    """

    def __init__(self, kind: str, *, vocab_size: int, d_model: int, n_layers: int) -> None:
        super().__init__()
        network = {"rnn": nn.RNN, "lstm": nn.LSTM}[kind]
        self.vectors = nn.Embedding(vocab_size, d_model)
        self.network = network(d_model, 2 * d_model, n_layers, batch_first=True)
        self.unembedding = nn.Linear(2 * d_model, vocab_size)

    def forward(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token vocab"]:
        """Return the logits at every token."""
        states, _ = self.network(self.vectors(ids))
        logits: Tensor = self.unembedding(states)
        return logits


def make_network(parameters: LearnTask, task: Task) -> nn.Module:
    """Return the network in float64, its weights drawn from the seed."""
    generator = torch.Generator().manual_seed(parameters.seed)
    vocab_size = len(task.vocabulary)
    if parameters.model == "transformer":
        config = TransformerConfig(
            n_layers=parameters.n_layers,
            n_heads=parameters.n_heads,
            d_model=parameters.d_model,
            d_ff=2 * parameters.d_model,
            vocab_size=vocab_size,
            max_tokens=task.n_read + task.n_answers,
            kind="decoder" if parameters.is_causal else "encoder",
            positional=parameters.positional,
            norm_place=parameters.norm_place,
        )
        transformer = Transformer(config).double()
        initialise(transformer, generator)
        return transformer
    sizes = {"d_model": parameters.d_model, "n_layers": parameters.n_layers}
    network = RecurrentNetwork(parameters.model, vocab_size=vocab_size, **sizes).double()
    bound = (2 * parameters.d_model) ** -0.5  # as PyTorch's modules do
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.uniform_(-bound, bound, generator=generator)
    return network


def run(parameters: LearnTask) -> Iterator[Arrays]:
    """Train the network; the first frame shows it untrained."""
    task = make_task(parameters)
    network = make_network(parameters, task)
    tested = _tensors(task.draw(np.random.default_rng([parameters.seed, 1]), N_TESTED))
    example = [task.vocabulary[index] for index in tested[0][0].tolist()]
    yield {
        "token": np.array(example),
        "target": np.array([task.vocabulary[index] for index in tested[1][0].tolist()]),
        "n_parameters": np.array(sum(each.numel() for each in network.parameters())),
        **_frame(network, task, tested, 0),
    }
    rng = np.random.default_rng([parameters.seed, 0])
    optimizers = _make_optimizers(network, parameters)
    for steps in frames_of(parameters.steps):
        losses = [
            _train(
                network, optimizers, _tensors(task.draw(rng, parameters.batch)), parameters, step
            )
            for step in steps
        ]
        yield {
            "step": np.array(steps) + 1,
            "loss": np.array(losses),
            **_frame(network, task, tested, steps.stop),
        }


def _tensors(drawn: tuple[np.ndarray, np.ndarray]) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(drawn[0]), torch.from_numpy(drawn[1])


def _logits(network: nn.Module, ids: Tensor, n_answers: int) -> Float[Tensor, "row answer vocab"]:
    """Return the logits at the places of the answers."""
    made = network(ids)
    logits: Tensor = made.logits if isinstance(network, Transformer) else made
    return logits[:, -n_answers:]


def _make_optimizers(network: nn.Module, parameters: LearnTask) -> list[torch.optim.Optimizer]:
    rate = parameters.learning_rate
    if isinstance(network, Transformer):
        return make_optimizers(network, "adamw", learning_rate=rate)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0
    )
    optimizer.param_groups[0]["peak"] = rate
    return [optimizer]


def _train(
    network: nn.Module,
    optimizers: list[torch.optim.Optimizer],
    rows: tuple[Tensor, Tensor],
    parameters: LearnTask,
    step: int,
) -> float:
    """Make one step; return the loss before it, in bits for each answer."""
    check()
    ids, answers = rows
    logits = _logits(network, ids, answers.shape[1])
    loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), MAX_GRADIENT)
    steps = parameters.steps
    warmup = min(parameters.warmup, steps // 2)
    factor = warmup_stable_decay(step, steps=steps, warmup=warmup, decay=steps // 4)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        optimizer.step()
        optimizer.zero_grad()
    return loss.item() / math.log(2)


@torch.no_grad()
def _frame(
    network: nn.Module, task: Task, tested: tuple[Tensor, Tensor], step: int
) -> dict[str, np.ndarray]:
    """Return the accuracy on the tested sequences, and the attention of the first of them."""
    ids, answers = tested
    logits = _logits(network, ids, task.n_answers)
    is_right = logits.argmax(dim=-1) == answers
    predicted = [task.vocabulary[index] for index in logits[0].argmax(dim=-1).tolist()]
    frame = {
        "frame": np.array([step]),
        "accuracy": is_right.double().mean().numpy()[None],
        "sequence_accuracy": is_right.all(dim=1).double().mean().numpy()[None],
        "prediction": np.array([predicted]),
        "probability": logits[0].softmax(dim=-1).amax(dim=-1).numpy()[None],
    }
    if isinstance(network, Transformer):
        with network.capture(["*.self_attention.weights"]) as captured:
            network(ids[:1])
        weights = torch.stack([weights[0] for weights in captured.values()])
        frame["attention"] = weights.float().numpy()[None]
    return frame


EXPERIMENT = Experiment(
    id="learn_task",
    order=13,
    group="Learning",
    tab="Watch it learn",
    title="Watch a network learn a task",
    parameters=LearnTask,
    run=run,
    cost=cost,
    is_streamed=True,
    way_out="choose fewer steps, a smaller batch, a shorter sequence or a smaller network",
)
