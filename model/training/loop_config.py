"""How long a run lasts and how it learns: everything the loop can be told."""

from __future__ import annotations

from dataclasses import dataclass

from headlight.model.training.optimizers import OPTIMIZERS
from headlight.model.training.schedule import SCHEDULES

MOST = 2**62


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """How long a run lasts and how it learns.

    Args:
        steps: how many updates.
        seed: decides the weights at the start and every batch.
        optimizer: ``muon`` for the matrices inside the layers, with AdamW for the rest, or
            ``adamw`` for everything.
        learning_rate: at its peak.
        adam_share: beside Muon, AdamW learns at this share of the rate.
        schedule: how the rate moves; a name of `SCHEDULES`.
        warmup: steps in which it rises.
        decay: fraction of all steps in which it falls at the end.
        weight_decay: decoupled, of the matrices inside the layers.
        clip: greatest norm of the gradient.
        smoothing: share of each target's probability that is spread over the vocabulary.
        balance_weight: of the experts' balance loss.
        accumulate: parts that each batch is read in, to save memory; the update is the same.
        validate_every: steps between two looks at the held-out rows.
        save_every: steps between two states on disk.

    Raises:
        ValueError: a number is out of its range, or a name is unknown.
    """

    steps: int = 3300
    seed: int = 0
    optimizer: str = "muon"
    learning_rate: float = 6e-3
    adam_share: float = 0.5
    schedule: str = "warmup_stable_decay"
    warmup: int = 90
    decay: float = 0.3
    weight_decay: float = 0.05
    clip: float = 1.0
    smoothing: float = 0.0
    balance_weight: float = 0.1
    accumulate: int = 1
    validate_every: int = 100
    save_every: int = 50

    def __post_init__(self) -> None:
        for name in ("steps", "accumulate", "validate_every", "save_every"):
            self._require(name, getattr(self, name) >= 1, "be at least 1")
        for name in ("steps", "seed", "warmup"):
            self._require(name, 0 <= getattr(self, name) < MOST, "lie between 0 and 2^62")
        for name in ("learning_rate", "adam_share", "clip"):
            self._require(name, getattr(self, name) > 0, "be positive")
        for name in ("weight_decay", "balance_weight"):
            self._require(name, getattr(self, name) >= 0, "be at least 0")
        self._require("decay", 0 <= self.decay <= 1, "lie in [0, 1]")
        self._require("smoothing", 0 <= self.smoothing < 1, "lie in [0, 1)")
        for name, known in (("optimizer", OPTIMIZERS), ("schedule", tuple(SCHEDULES))):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} {getattr(self, name)!r} is unknown; choose one of {', '.join(known)}"
                )

    def _require(self, name: str, is_met: bool, rule: str) -> None:
        if not is_met:
            raise ValueError(f"{name} ({getattr(self, name)}) must {rule}")
