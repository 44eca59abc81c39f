"""The one training loop: batches in, a trained model out, stopped and resumed at any step."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from headlight.model.training.batches import Batch
from headlight.model.training.distributed import ALONE, Processes
from headlight.model.training.loop_config import LoopConfig
from headlight.model.training.losses import token_losses
from headlight.model.training.metrics import METRICS, StepReport, append_report, drop_reports_after
from headlight.model.training.optimizers import make_optimizers
from headlight.model.training.schedule import SCHEDULES
from headlight.model.training.state import STATE, load_state, save_state
from headlight.model.training.stop_requests import stop_requests
from headlight.model.transformer import Prediction, Transformer

# The seeds of the parts of one step lie this far apart, further than any run has steps.
PART_SEEDS = 10**12


@runtime_checkable
class Batches(Protocol):
    """What a recipe gives the loop. A batch depends on the seed and the step alone."""

    def batch(self, step: int) -> Batch:
        """What one step trains on."""

    def validation(self) -> list[Batch]:
        """What no step trains on."""


class Diverged(ValueError):
    """The loss is no number any more; going on would only spoil the weights."""


Listener = Callable[[StepReport], None]


class Loop:
    """Trains a model on batches and keeps what is needed to go on.

    Args:
        model: trained in place, on the device it lies on.
        batches: what to train on.
        config: how.
        out: the folder for the state and `METRICS`.
        precision: bfloat16 runs the matrix products under autocast.
        processes: those that train together, all with the same arguments.
    """

    def __init__(
        self,
        model: Transformer,
        batches: Batches,
        config: LoopConfig,
        out: Path,
        precision: torch.dtype = torch.float32,
        processes: Processes = ALONE,
    ) -> None:
        self.model = model
        self.batches = batches
        self.config = config
        self.out = out
        self.precision = precision
        self.processes = processes
        self.optimizers = make_optimizers(
            model,
            config.optimizer,
            learning_rate=config.learning_rate,
            adam_share=config.adam_share,
            weight_decay=config.weight_decay,
        )
        self.step = 0
        self.tokens = 0
        self.seconds = 0.0
        self._saved_step = -1

    def resume(self) -> None:
        """Continue from the state in `out`, or begin where none was saved yet.

        Raises:
            CheckpointError: the state is damaged, or of another model.
        """
        if (self.out / STATE).exists():
            progress = load_state(self.out / STATE, self.model, self.optimizers)
            self.step = self._saved_step = int(progress["step"])
            self.tokens = int(progress["tokens"])
            self.seconds = float(progress["seconds"])
        if self.processes.is_first:
            drop_reports_after(self.out / METRICS, self.step)

    def save(self) -> None:
        """Write the state, whole or not at all."""
        if self.processes.is_first:
            progress = {"step": self.step, "tokens": self.tokens, "seconds": self.seconds}
            save_state(self.out / STATE, self.model, self.optimizers, progress)
        self._saved_step = self.step

    def run(self, listener: Listener = lambda report: None) -> bool:
        """Train to the last step; False when Ctrl-C or SIGTERM stopped it, after saving.

        Raises:
            Diverged: the loss is not finite; the state saved last stays as it is.
        """
        if self.processes.is_first:
            self.out.mkdir(parents=True, exist_ok=True)
        with stop_requests() as is_stopped:
            while self.step < self.config.steps and not self.processes.any(is_stopped()):
                report = self._advance()
                if self.processes.is_first:
                    append_report(self.out / METRICS, report)
                listener(report)
                if self.step % self.config.save_every == 0:
                    self.save()
            if self._saved_step != self.step:
                self.save()
        return self.step >= self.config.steps

    def validate(self) -> float:
        """The mean loss of the validation rows, in nats per token."""
        self.model.eval()
        device = _device_of(self.model)
        total = count = 0.0
        with torch.inference_mode():
            for batch in self.batches.validation()[self.processes.rank :: self.processes.size]:
                batch = batch.to(device)
                losses = token_losses(batch.predict(self.model).logits, batch.targets)
                total += (losses * batch.is_counted).sum().item()
                count += batch.is_counted.sum().item()
        self.model.train()
        total, count = self.processes.sums([total, count])
        return total / count

    def _advance(self) -> StepReport:
        began = perf_counter()
        batch = self.batches.batch(self.step)
        loss, balance_loss = self._update(batch)
        self.step += 1
        is_due = self.step % self.config.validate_every == 0 or self.step == self.config.steps
        valid_loss = self.validate() if is_due else None
        self.tokens += batch.targets.numel()
        self.seconds += perf_counter() - began
        return StepReport(self.step, loss, balance_loss, valid_loss, self.tokens, self.seconds)

    def _update(self, batch: Batch) -> tuple[float, float]:
        config = self.config
        factor = SCHEDULES[config.schedule](
            self.step,
            steps=config.steps,
            warmup=config.warmup,
            decay=int(config.decay * config.steps),
        )
        self.model.train()
        # 1. Predict every target; how would each weight have to move?
        self.model.zero_grad()
        loss, balance_loss = self.processes.sums(self._losses(batch))
        if not math.isfinite(loss):
            raise Diverged(
                f"the loss of step {self.step + 1} is {loss}; what was saved before is kept"
            )
        self.processes.add_gradients(self.model.parameters())
        nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        # 2. Move it.
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = factor * group["peak"]
            optimizer.step()
        return loss, balance_loss

    def _losses(self, batch: Batch) -> tuple[float, float]:
        """Add up the gradients of this process's parts of a batch, and their shares of its loss.

        Returns:
            The loss and the balance loss.
        """
        n_counted, total, balance_total = int(batch.is_counted.sum()), 0.0, 0.0
        first, n_parts = self.processes.rank * self.config.accumulate, self._n_parts
        for number in range(first, min(first + self.config.accumulate, len(batch.ids))):
            part = batch.part(number, n_parts).to(_device_of(self.model))
            # A part is the same after a resume, and whichever process reads it.
            torch.manual_seed((self.config.seed + self.step + number * PART_SEEDS) % 2**63)
            logits, balance_loss = self._predict(part)
            losses = token_losses(logits, part.targets, smoothing=self.config.smoothing)
            loss = (losses * part.is_counted).sum() / n_counted
            balance_loss = balance_loss * len(part.ids) / len(batch.ids)
            (loss + self.config.balance_weight * balance_loss).backward()
            total += loss.item()
            balance_total += balance_loss.item()
        return total, balance_total

    @property
    def _n_parts(self) -> int:
        return self.processes.size * self.config.accumulate

    def _predict(self, part: Batch) -> Prediction:
        is_half = self.precision == torch.bfloat16
        with torch.autocast(part.ids.device.type, self.precision, enabled=is_half):
            return part.predict(self.model)


def _device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
