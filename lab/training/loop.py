"""The training loop: batches in, a trained model out, stopped and resumed at any step.

`Loop.run` is the loop, `Loop._update` one step of it. A run's folder holds ``metrics.jsonl``, a
line a step, and ``training.safetensors``, the state that a resumed run continues from. With a
schedule that stays at its peak, ``before_decay.safetensors`` is the state before the rate falls:
a longer run has made the same steps up to it, and continues from there.
"""

from __future__ import annotations

import json
import math
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from headlight.lab.training.batches import Batch, Batches
from headlight.lab.training.config import LoopConfig
from headlight.lab.training.losses import distillation_losses
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.loading import write_atomically
from headlight.model.optimization.optimizers import make_optimizers
from headlight.model.optimization.schedule import SCHEDULES
from headlight.model.transformer import Prediction, Transformer

METRICS = "metrics.jsonl"
STATE = "training.safetensors"
BEFORE_DECAY = "before_decay.safetensors"
BEST = "best-{:0>9}.safetensors"
SNAPSHOT = "weights-{:0>9}.safetensors"
# The seeds of the parts of one step are this far apart, which is more steps than any run has.
PART_SEEDS = 10**12


class Diverged(ValueError):
    """The loss is not finite; more steps would only spoil the weights."""


@dataclass(frozen=True)
class StepReport:
    """The metrics of one step; losses in nats, ``valid_loss`` None between validations.

    ``figures`` are those of the recipe, by name.
    """

    step: int
    loss: float
    balance_loss: float
    valid_loss: float | None
    tokens: int
    seconds: float
    figures: Mapping[str, float] = field(default_factory=dict)


class Lesson(NamedTuple):
    """The result of one update: its loss, the tokens that it read or wrote, and its figures."""

    loss: float
    n_tokens: int
    balance_loss: float = 0.0
    figures: Mapping[str, float] = MappingProxyType({})


Listener = Callable[[StepReport], None]


@dataclass(frozen=True)
class Best:
    """The validation with the lowest held-out loss: its step, its loss, those after it."""

    step: int = 0
    loss: float = math.inf
    n_worse: int = 0

    def after(self, step: int, loss: float) -> Best:
        """Return the best after one more validation; of equals the first stays."""
        return Best(step, loss) if loss < self.loss else replace(self, n_worse=self.n_worse + 1)


class Loop:
    """Trains a model on batches and saves the state that a resumed run continues from.

    Args:
        model: trained in place, on the device it is on.
        batches: the batches of the recipe.
        config: the hyperparameters.
        out: the folder for `STATE` and `METRICS`.
        precision: with bfloat16 the forward pass runs under autocast.
        teacher: a model in eval mode on the same device, with the same vocabulary, whose
            distributions the model also learns from; None: it learns only from the text.
    """

    def __init__(
        self,
        model: Transformer,
        batches: Batches,
        config: LoopConfig,
        out: Path,
        precision: torch.dtype = torch.float32,
        teacher: Transformer | None = None,
    ) -> None:
        self.model = model
        self.teacher = teacher if config.teacher_weight else None
        self.batches = batches
        self.config = config
        self.out = out
        self.precision = precision
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
        self.best = Best()
        self.observers: list[tuple[int, Callable[[Loop], Mapping[str, float]]]] = []
        self._best_before_decay = 0
        self._saved_step = -1
        self.prepare()

    def prepare(self) -> None:
        """Load what the loop of a recipe needs besides; nothing here.

        Raises:
            ValueError: it cannot be used.
        """

    @property
    def has_converged(self) -> bool:
        """Whether `patience` validations in a row brought no lower held-out loss."""
        return 0 < self.config.patience <= self.best.n_worse

    @property
    def is_finished(self) -> bool:
        """Whether no step is left to make."""
        return self.step >= self.config.steps or self.has_converged

    def observe(self, every: int, observer: Callable[[Loop], Mapping[str, float]]) -> None:
        """Call a function with the loop after every so many steps; its figures are reported."""
        self.observers.append((every, observer))

    def run(self, listener: Listener = lambda report: None) -> bool:
        """Train to the last step, or to Ctrl-C or SIGTERM, and save.

        Returns:
            False if a signal stopped the run.

        Raises:
            Diverged: the loss is not finite; the state saved last is kept.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        with stop_requests() as is_stopped:
            while not self.is_finished and not is_stopped():
                report = self._observed(self._advance())
                if report.valid_loss is not None:
                    self._compare(report.valid_loss)
                append_report(self.out / METRICS, report)
                listener(report)
                if self.step % self.config.save_every == 0:
                    self.save()
                if self.step == self._last_stable_step():
                    self._save_before_decay()
            if self._saved_step != self.step:
                self.save()
        return self.is_finished

    def _observed(self, report: StepReport) -> StepReport:
        """Add the figures of the observers that are due to a report."""
        figures = dict(report.figures)
        for every, observer in self.observers:
            if self.step % every == 0 or self.is_finished:
                figures |= observer(self)
        return replace(report, figures=figures)

    def _compare(self, valid_loss: float) -> None:
        """Note a validation, and write its weights if it is the best one."""
        self.best = self.best.after(self.step, valid_loss)
        if self.config.best and self.best.step == self.step:
            self._write_weights(self.out / BEST.format(self.step))
            kept = {BEST.format(self.step), BEST.format(self._best_before_decay)}
            for path in self.out.glob(BEST.format("?" * 9)):
                if path.name not in kept:
                    path.unlink()

    def _last_stable_step(self) -> int:
        """Return the step after which the learning rate falls, 0 if that has no such step."""
        config = self.config
        is_stable = config.schedule == "warmup_stable_decay"
        return config.steps - int(config.decay * config.steps) if is_stable else 0

    def _save_before_decay(self) -> None:
        """Keep the state of this step, from which a longer run continues."""
        self._best_before_decay = self.best.step
        if self._last_stable_step() < self.config.steps:
            self._save_state(self.out / BEFORE_DECAY)

    def validate(self) -> float:
        """Return the mean loss of the validation batches, in nats per token."""
        self.model.eval()
        device = _device_of(self.model)
        total = count = 0.0
        with torch.inference_mode():
            for batch in self.batches.validation():
                batch = batch.to(device)
                losses = batch.losses(batch.predict(self.model))
                total += (losses * batch.is_counted).sum().item()
                count += batch.is_counted.sum().item()
        self.model.train()
        return total / count

    def less_memory(self) -> str:
        """Advise on the setting with which a step needs less memory."""
        return (
            f"read each batch in more parts with --set loop.accumulate={2 * self.config.accumulate}"
        )

    def figures(self) -> dict[str, float]:
        """Measure what a recipe validates in addition to the loss; nothing here."""
        return {}

    def rewind(self) -> None:
        """Replace the state in `out` by the one before the learning rate fell, if it is later.

        A longer run continues from it to the weights that it would have reached in one go. The
        other schedules are continued from the last step.
        """
        earlier = self.out / BEFORE_DECAY
        if self.config.schedule == "warmup_stable_decay" and earlier.exists():
            write_atomically(self.out / STATE, lambda path: shutil.copyfile(earlier, path))

    def resume(self) -> None:
        """Load the state in `out`; without one, begin at step 0.

        Raises:
            CheckpointError: the state is damaged, or of another model.
        """
        if (self.out / STATE).exists():
            progress = load_state(self.out / STATE, self.model, self.optimizers)
            self.step = self._saved_step = int(progress["step"])
            self.tokens = int(progress["tokens"])
            self.seconds = float(progress["seconds"])
            self.best = Best(**progress["best"]) if "best" in progress else Best()
            self._best_before_decay = int(progress.get("best_before_decay", 0))
        drop_reports_after(self.out / METRICS, self.step)

    def save(self) -> None:
        """Write the state, atomically."""
        self._save_state(self.out / STATE)
        if self.config.averaged > 1:
            self._save_snapshot()
        self._saved_step = self.step

    def _save_state(self, path: Path) -> None:
        progress: dict[str, Any] = {
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "best_before_decay": self._best_before_decay,
        }
        if self.best.step:
            progress["best"] = asdict(self.best)
        save_state(path, self.model, self.optimizers, progress)

    def choose_weights(self) -> None:
        """Replace the weights by those of the best validation, or by a mean, if asked for.

        Raises:
            CheckpointError: the weights of the best validation are not there.
        """
        if self.config.best and self.best.step not in (0, self.step):
            path = self.out / BEST.format(self.best.step)
            try:
                self.model.load_weights(load_file(path))
            except (OSError, SafetensorError, RuntimeError) as error:
                raise CheckpointError(f"{path} cannot be read: {error}") from error
        self.average()

    def average(self) -> None:
        """Replace the weights by their mean over the states saved last, if `averaged` asks for it.

        Vaswani et al. 2017, section 6.1, https://arxiv.org/abs/1706.03762. The state that a
        resumed run continues from keeps the weights of its step.
        """
        if self.config.averaged > 1:
            snapshots = [load_file(path) for path in self._snapshots()[-self.config.averaged :]]
            self.model.load_weights(
                {
                    name: torch.stack([snapshot[name] for snapshot in snapshots]).mean(dim=0)
                    for name in snapshots[0]
                }
            )

    def _save_snapshot(self) -> None:
        """Write the weights of this step, and remove those that no average will need."""
        self._write_weights(self.out / SNAPSHOT.format(self.step))
        for old in self._snapshots()[: -self.config.averaged]:
            old.unlink()

    def _write_weights(self, path: Path) -> None:
        weights = {name: tensor.contiguous() for name, tensor in self.model.weights().items()}
        write_atomically(path, lambda partial: save_file(weights, partial))

    def _snapshots(self) -> list[Path]:
        """List the weights saved up to this step, in the order of their steps."""
        return sorted(
            path
            for path in self.out.glob(SNAPSHOT.format("?" * 9))
            if path.name <= SNAPSHOT.format(self.step)
        )

    def _advance(self) -> StepReport:
        """Make one step, and validate if it is due."""
        began = perf_counter()
        lesson = self._learn()
        self.step += 1
        is_due = self.step % self.config.validate_every == 0 or self.step == self.config.steps
        valid_loss = self.validate() if is_due else None
        figures = {**lesson.figures, **(self.figures() if is_due else {})}
        self.tokens += lesson.n_tokens
        self.seconds += perf_counter() - began
        return StepReport(
            self.step,
            lesson.loss,
            lesson.balance_loss,
            valid_loss,
            self.tokens,
            self.seconds,
            figures=figures,
        )

    def _learn(self) -> Lesson:
        """Update the weights by this step's batch."""
        batch = self.batches.batch(self.step)
        loss, balance_loss = self._update(batch)
        return Lesson(loss, batch.ids.numel(), balance_loss)

    def _update(self, batch: Batch) -> tuple[float, float]:
        """Update the weights once; return the loss and the balance loss."""
        # 1. Forward and backward: add up the gradients of every part.
        self.model.train()
        self.model.zero_grad()
        loss, balance_loss = self._accumulate(batch)
        if not math.isfinite(loss):
            raise Diverged(
                f"the loss of step {self.step + 1} is {loss}; the state saved before is kept"
            )
        # 2. Clip, and update at this step's learning rate.
        self._descend()
        return loss, balance_loss

    def _descend(self) -> None:
        """Clip the gradients, and update the weights at this step's learning rate."""
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        factor = self._factor()
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = factor * group["peak"]
            optimizer.step()

    def _factor(self) -> float:
        """Return this step's factor on the learning rate."""
        config = self.config
        return SCHEDULES[config.schedule](
            self.step,
            steps=config.steps,
            warmup=config.warmup,
            decay=int(config.decay * config.steps),
        )

    def _accumulate(self, batch: Batch) -> tuple[float, float]:
        """Add up the gradients of the parts of a batch.

        Returns:
            The batch's loss and its balance loss.
        """
        n_counted, total, balance_total = int(batch.is_counted.sum()), 0.0, 0.0
        n_parts = self.config.accumulate
        for number in range(min(n_parts, len(batch.ids))):
            part = batch.part(number, n_parts).to(_device_of(self.model))
            # Dropout depends on the step and the part, not on a resume.
            torch.manual_seed((self.config.seed + self.step + number * PART_SEEDS) % 2**63)
            prediction = self._predict(part)
            losses = self._losses(prediction, part)
            loss = (losses * part.is_counted).sum() / n_counted
            balance_loss = prediction.balance_loss * len(part.ids) / len(batch.ids)
            (loss + self.config.balance_weight * balance_loss).backward()
            total += loss.item()
            balance_total += balance_loss.item()
        return total, balance_total

    def _losses(self, prediction: Prediction, part: Batch) -> Tensor:
        """Compute the loss of every target, mixed with the teacher's."""
        losses = part.losses(prediction, smoothing=self.config.smoothing)
        if self.teacher is None:
            return losses
        with torch.no_grad():
            teacher_logits = self._predict(part, self.teacher).logits
        share, temperature = self.config.teacher_weight, self.config.temperature
        distilled = distillation_losses(prediction.logits, teacher_logits, temperature=temperature)
        return (1 - share) * losses + share * distilled

    def _predict(self, part: Batch, model: Transformer | None = None) -> Prediction:
        is_half = self.precision == torch.bfloat16
        with torch.autocast(part.ids.device.type, self.precision, enabled=is_half):
            return part.predict(model or self.model)


def _device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


# --- signals --------------------------------------------------------------------------------------


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C and SIGTERM into a flag, so that a step is never interrupted.

    Outside the main thread, the only one that receives signals, the flag is never set.
    """
    requests: list[int] = []

    def note(number: int, _frame: object) -> None:
        requests.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread
        before = {}
    try:
        yield lambda: bool(requests)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- metrics --------------------------------------------------------------------------------------


def append_report(path: Path, report: StepReport) -> None:
    """Append a step's metrics as a line of JSON."""
    metrics = asdict(report)
    metrics |= metrics.pop("figures")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(metrics) + "\n")


def drop_reports_after(path: Path, step: int) -> None:
    """Remove the lines of later steps, which will be made again, and an unfinished last line."""
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        write_atomically(path, lambda partial: partial.write_text("".join(kept), encoding="utf-8"))


# --- state ----------------------------------------------------------------------------------------


def save_state(
    path: Path,
    model: Transformer,
    optimizers: Sequence[torch.optim.Optimizer],
    progress: Mapping[str, Any],
) -> None:
    """Write weights, optimizer state and progress to one safetensors file."""
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in model.weights().items()}
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    for number, optimizer in enumerate(optimizers):
        for parameter, state in optimizer.state.items():
            for key, value in state.items():
                tensors[f"optimizer.{number}.{names[parameter]}.{key}"] = value.contiguous()
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"progress": json.dumps(progress)}
    write_atomically(path, lambda partial: save_file(tensors, partial, metadata))


def load_state(
    path: Path, model: Transformer, optimizers: Sequence[torch.optim.Optimizer]
) -> dict[str, Any]:
    """Load weights and optimizer state in place; return the progress.

    Raises:
        CheckpointError: the file is missing, damaged, or from a model of another shape.
    """
    try:
        with safe_open(path, framework="pt") as file:
            progress = json.loads((file.metadata() or {})["progress"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        model.load_weights(_below("model.", tensors))
    except (OSError, SafetensorError, KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} does not continue this run: {error}") from error
    names = {parameter: name for name, parameter in model.named_parameters()}
    for number, optimizer in enumerate(optimizers):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = _below(f"optimizer.{number}.{names[parameter]}.", tensors)
                optimizer.state[parameter] = {  # a step counter stays on the CPU
                    key: tensor.to(parameter.device) if tensor.ndim else tensor
                    for key, tensor in state.items()
                }
    return dict(progress)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors[name] for name in names}
