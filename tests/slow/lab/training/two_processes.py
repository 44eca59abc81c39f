"""The work of two processes, a script that `test_two_processes.py` starts with torchrun.

Each process writes what it saw to ``<rank>.json`` in the folder named by the first argument.
"""

import hashlib
import json
import math
import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn

from headlight.lab.training.batches import Batch, generator_of
from headlight.lab.training.config import LoopConfig
from headlight.lab.training.distributed import ALONE, join
from headlight.lab.training.loop import Diverged, Loop, StepReport
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.transformer import Transformer

DENSE = TransformerConfig(
    n_layers=2, n_heads=2, d_model=16, d_ff=24, vocab_size=50, max_tokens=16, dropout=0.0
)
EXPERTS = TransformerConfig(
    n_layers=2,
    n_heads=2,
    d_model=16,
    d_ff=24,
    vocab_size=50,
    max_tokens=16,
    dropout=0.1,
    moe=ExpertsConfig(n_experts=8, top_k=1, layers=(0, 1)),
)


class Counting:
    """Rows that count upwards, of which each counts another share of its targets."""

    def __init__(self, n_rows):
        self.n_rows = n_rows

    def batch(self, step):
        rows = torch.randint(40, (self.n_rows, 1), generator=generator_of(0, step))
        is_counted = torch.arange(9) < 2 + 3 * torch.arange(self.n_rows)[:, None]
        return Batch.of_rows(rows + torch.arange(10), is_counted)

    def validation(self):
        return [self.batch(1000 + number) for number in range(3)]


def make_loop(out, processes, model, n_rows, **config):
    torch.manual_seed(0)
    settings = {"steps": 6, "warmup": 2, "validate_every": 3, "smoothing": 0.1, **config}
    loop_config = LoopConfig(**settings)
    return Loop(Transformer(model), Counting(n_rows), loop_config, out, processes=processes)


def curve(loop):
    """Return the losses of a run, and a digest of the weights at its end."""
    reports: list[StepReport] = []
    loop.run(reports.append)
    digest = hashlib.sha256()
    for weights in loop.model.weights().values():
        digest.update(weights.detach().numpy().tobytes())
    return {
        "loss": [report.loss for report in reports],
        "balance_loss": [report.balance_loss for report in reports],
        "valid_loss": [report.valid_loss for report in reports if report.valid_loss],
        "tokens": reports[-1].tokens,
        "weights": digest.hexdigest(),
    }


def curves(out, processes=ALONE):
    """Return the same runs by one process or by several.

    One process reads a batch of experts in as many parts as there are processes otherwise.
    """
    parts = 2 // processes.size
    return {
        "dense": curve(make_loop(out / "dense", processes, DENSE, 5)),
        "one_row": curve(make_loop(out / "one_row", processes, DENSE, 1, optimizer="adamw")),
        "experts": curve(make_loop(out / "experts", processes, EXPERTS, 5, accumulate=parts)),
        "parts": curve(make_loop(out / "parts", processes, EXPERTS, 7, accumulate=2 * parts)),
    }


def exchanged(processes):
    """Return the result of every exchange if the two processes put in different values."""
    rank = processes.rank
    parameters = [nn.Parameter(torch.zeros(2, 3)) for _ in range(4)]
    parameters[0].grad = torch.full((2, 3), 1.0 + rank)
    if rank == 1:
        parameters[1].grad = torch.full((2, 3), 5.0)
    parameters[3].grad = torch.zeros(2, 3)
    processes.add_gradients(parameters)
    return {
        "sums": processes.sums([1.0 + rank, 10.0]),
        "any": [processes.any(flag) for flag in (False, rank == 1, rank == 0, True)],
        "first": processes.first(f"of {rank}"),
        "gradients": [None if p.grad is None else p.grad.tolist() for p in parameters],
    }


def stopped(out, processes):
    """Return if and where a run ends when a signal reaches only the second process."""

    def listen(report):
        if report.step == 3 and processes.rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    loop = make_loop(out / "stopped", processes, DENSE, 5)
    return [loop.run(listen), loop.step]


def diverged(out, processes):
    """Return the error of a run in which only the weights of the second process are spoilt."""
    loop = make_loop(out / "diverged", processes, DENSE, 5)

    def listen(report):
        if report.step == 2 and processes.rank == 1:
            with torch.no_grad():
                loop.model.decoder.norm.scale.fill_(math.nan)

    try:
        loop.run(listen)
    except Diverged as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    with join(torch.device("cpu")) as together:
        # Each process has its own folder, to see which of them writes.
        out = folder / str(together.rank)
        seen = {
            "size": together.size,
            "exchanged": exchanged(together),
            "curves": curves(out, together),
            "stopped": stopped(out, together),
            "diverged": diverged(out, together),
        }
    (folder / f"{together.rank}.json").write_text(json.dumps(seen))
