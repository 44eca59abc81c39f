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
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.experiments.experiment import Arrays
from headlight.model.experiments.learn_task import N_FRAMES, N_TESTED, SYMBOLS, LearnTask
from headlight.model.training.optimizers import make_optimizers
from headlight.model.training.schedule import warmup_stable_decay
from headlight.model.transformer import Transformer, initialise

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
        """Token ids to read, and those of the answers, at the last places."""
        if self.name == "addition":
            return self._draw_sums(rng, n_rows)
        n_symbols = len(self.vocabulary) - 1
        if self.name == "induction":
            return self._draw_queries(rng, n_rows, n_symbols)
        read = rng.integers(0, n_symbols, (n_rows, self.n_read))
        answers = {"copy": read, "reverse": read[:, ::-1], "sort": np.sort(read, axis=1)}[self.name]
        return np.concatenate([read, np.full_like(read, n_symbols)], axis=1), answers.copy()

    def _draw_queries(
        self, rng: np.random.Generator, n_rows: int, n_symbols: int
    ) -> tuple[np.ndarray, np.ndarray]:
        read = rng.permuted(np.tile(np.arange(n_symbols), (n_rows, 1)), axis=1)[:, : self.n_read]
        places = rng.integers(0, self.n_read - 1, (n_rows, self.n_answers))
        queries = np.take_along_axis(read, places, axis=1)
        answers = np.take_along_axis(read, places + 1, axis=1)
        return np.concatenate([read, queries], axis=1), answers

    def _draw_sums(self, rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        n_digits = self.n_answers - 1
        numbers = rng.integers(0, 10**n_digits, (n_rows, 2))
        powers = 10 ** np.arange(n_digits, -1, -1)
        first, second, total = (
            number[:, None] // powers % 10 for number in (*numbers.T, numbers.sum(axis=1))
        )
        plus, blank = (np.full((n_rows, 1), self.vocabulary.index(sign)) for sign in (PLUS, BLANK))
        blanks = blank.repeat(self.n_answers, axis=1)
        read = np.concatenate([first[:, 1:], plus, second[:, 1:], blanks], axis=1)
        return read, total


def make_task(parameters: LearnTask) -> Task:
    """The task of the parameters."""
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
        """The logits at every token."""
        states, _ = self.network(self.vectors(ids))
        return self.unembedding(states)


def make_network(parameters: LearnTask, task: Task) -> nn.Module:
    """The network in float64, its weights drawn from the seed."""
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
        )
        network: nn.Module = Transformer(config).double()
        initialise(network, generator)
        return network
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
    first = 0
    for last in _frame_steps(parameters.steps):
        losses = [
            _train(
                network, optimizers, _tensors(task.draw(rng, parameters.batch)), parameters, step
            )
            for step in range(first, last)
        ]
        yield {
            "step": np.arange(first + 1, last + 1),
            "loss": np.array(losses),
            **_frame(network, task, tested, last),
        }
        first = last


def _frame_steps(steps: int) -> list[int]:
    """The numbers of steps after which a frame is recorded, ascending; the last is `steps`."""
    return sorted({round(steps * part / N_FRAMES) for part in range(1, N_FRAMES + 1)} - {0})


def _tensors(drawn: tuple[np.ndarray, np.ndarray]) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(drawn[0]), torch.from_numpy(drawn[1])


def _logits(network: nn.Module, ids: Tensor, n_answers: int) -> Float[Tensor, "row answer vocab"]:
    """The logits at the places of the answers."""
    made = network(ids)
    return (made.logits if isinstance(network, Transformer) else made)[:, -n_answers:]


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
    factor = warmup_stable_decay(step, steps=steps, warmup=min(20, steps // 2), decay=steps // 4)
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
    """The accuracy on the tested sequences, and the attention of the first of them."""
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
