"""The one training loop: batches in, a trained model out, stopped and resumed at any step."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from model.training.losses import language_model_loss
from model.training.muon import Muon
from model.training.rows import Batch
from model.training.schedule import warmup_stable_decay
from model.training.state import STATE, load_state, save_state
from model.transformer import Transformer

METRICS = "metrics.jsonl"


@runtime_checkable
class Batches(Protocol):
    """What a recipe gives the loop. A batch depends on the seed and the step alone."""

    def batch(self, step: int) -> Batch:
        """What one step trains on."""

    def validation(self) -> list[Batch]:
        """What no step trains on."""


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """How long a run lasts and how it learns.

    ``learning_rate`` is Muon's, for the matrices inside the layers; embeddings, norms and routers
    learn by AdamW at ``adam_share`` of it. ``warmup`` counts steps, ``decay`` is the fraction of
    all steps in which the rate falls.

    Raises:
        ValueError: a number is out of its range.
    """

    steps: int = 3300
    seed: int = 0
    learning_rate: float = 6e-3
    adam_share: float = 0.5
    warmup: int = 90
    decay: float = 0.3
    weight_decay: float = 0.05
    clip: float = 1.0
    balance_weight: float = 0.1
    validate_every: int = 100
    save_every: int = 50

    def __post_init__(self) -> None:
        for name in ("steps", "validate_every", "save_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 1")
        if not 0 <= self.seed < 2**62:
            raise ValueError(f"seed ({self.seed}) must lie between 0 and 2^62")
        if self.learning_rate <= 0:
            raise ValueError(f"learning_rate ({self.learning_rate}) must be positive")


class Diverged(ValueError):
    """The loss is no number any more; going on would only spoil the weights."""


@dataclass(frozen=True)
class StepReport:
    """One step as it is shown and logged; losses in nats, ``valid_loss`` where it was measured."""

    step: int
    loss: float
    balance_loss: float
    valid_loss: float | None
    tokens: int
    seconds: float


Listener = Callable[[StepReport], None]


class Loop:
    """Trains a model on batches and keeps what is needed to go on.

    Args:
        model: trained in place, on the device it lies on.
        batches: what to train on.
        config: how.
        out: the folder for the state and `METRICS`.
        precision: bfloat16 runs the matrix products under autocast.
    """

    def __init__(
        self,
        model: Transformer,
        batches: Batches,
        config: LoopConfig,
        out: Path,
        precision: torch.dtype = torch.float32,
    ) -> None:
        self.model = model
        self.batches = batches
        self.config = config
        self.out = out
        self.precision = precision
        self.optimizers = make_optimizers(model, config)
        self.step = 0
        self.tokens = 0
        self.seconds = 0.0

    def resume(self) -> None:
        """Continue from the state in `out`.

        Raises:
            CheckpointError: there is none, or it is of another model.
        """
        progress = load_state(self.out / STATE, self.model, self.optimizers)
        self.step = int(progress["step"])
        self.tokens = int(progress["tokens"])
        self.seconds = float(progress["seconds"])
        _drop_after(self.out / METRICS, self.step)

    def save(self) -> None:
        """Write the state, whole or not at all."""
        progress = {"step": self.step, "tokens": self.tokens, "seconds": self.seconds}
        save_state(self.out / STATE, self.model, self.optimizers, progress)

    def run(self, listener: Listener = lambda report: None) -> bool:
        """Train to the last step; False when Ctrl-C or SIGTERM stopped it, after saving.

        Raises:
            Diverged: the loss is not finite; the state saved last stays as it is.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        with _stop_requests() as is_stopped:
            while self.step < self.config.steps and not is_stopped():
                report = self._advance()
                self._log(report)
                listener(report)
                if self.step % self.config.save_every == 0:
                    self.save()
            self.save()
        return self.step >= self.config.steps

    def validate(self) -> float:
        """The mean loss of the validation rows, in nats per token."""
        self.model.eval()
        device = _device_of(self.model)
        total = count = 0.0
        with torch.inference_mode():
            for batch in self.batches.validation():
                batch = batch.to(device)
                logits = self.model(batch.inputs).logits
                loss = language_model_loss(logits, batch.targets, batch.is_counted)
                n_counted = batch.is_counted.sum().item()
                total += loss.item() * n_counted
                count += n_counted
        self.model.train()
        return total / count

    def _advance(self) -> StepReport:
        began = perf_counter()
        torch.manual_seed(self.config.seed + self.step)  # dropout after a resume is the same
        batch = self.batches.batch(self.step).to(_device_of(self.model))
        loss, balance_loss = self._update(batch)
        self.step += 1
        is_due = self.step % self.config.validate_every == 0 or self.step == self.config.steps
        valid_loss = self.validate() if is_due else None
        self.tokens += batch.targets.numel()
        self.seconds += perf_counter() - began
        return StepReport(self.step, loss, balance_loss, valid_loss, self.tokens, self.seconds)

    def _update(self, batch: Batch) -> tuple[float, float]:
        config = self.config
        factor = warmup_stable_decay(
            self.step,
            steps=config.steps,
            warmup=config.warmup,
            decay=int(config.decay * config.steps),
        )
        self.model.train()
        # 1. Predict every token from those before it.
        with torch.autocast(
            batch.rows.device.type, self.precision, enabled=self.precision == torch.bfloat16
        ):
            logits, balance_loss = self.model(batch.inputs)
        loss = language_model_loss(logits, batch.targets, batch.is_counted)
        if not loss.isfinite():
            raise Diverged(
                f"the loss of step {self.step + 1} is {loss.item()}; what was saved before is kept"
            )
        # 2. How would each weight have to move?
        self.model.zero_grad()
        (loss + config.balance_weight * balance_loss).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        # 3. Move it.
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = factor * group["peak"]
            optimizer.step()
        return loss.item(), balance_loss.item()

    def _log(self, report: StepReport) -> None:
        with (self.out / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(report.__dict__) + "\n")


def make_optimizers(model: Transformer, config: LoopConfig) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for embeddings, norms, biases and routers."""
    matrices, others = [], []
    for name, parameter in model.named_parameters():
        is_inner = parameter.ndim == 2 and ".layers." in name and "router" not in name
        (matrices if is_inner else others).append(parameter)
    adam_rate = config.adam_share * config.learning_rate
    optimizers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=config.learning_rate, weight_decay=config.weight_decay),
        torch.optim.AdamW(others, lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return optimizers


def _device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _drop_after(metrics: Path, step: int) -> None:
    """Forget the lines of steps that will be made again."""
    if metrics.exists():
        lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        metrics.write_text("".join(kept), encoding="utf-8")


@contextmanager
def _stop_requests() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C and SIGTERM into a flag, so that a step is never cut in the middle."""
    requests: list[int] = []

    def note(number: int, _frame: object) -> None:
        requests.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, so no signal arrives here
        before = {}
    try:
        yield lambda: bool(requests)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
