"""Every experiment by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headlight.model.lab.experiments import (
    balance,
    by_hand,
    depth,
    learn_task,
    minhash,
    projections,
    recurrence,
    scaling,
    schedule,
)
from headlight.model.lab.experiments.experiment import Experiment

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        module.EXPERIMENT.id: module.EXPERIMENT
        for module in (
            by_hand,
            projections,
            scaling,
            recurrence,
            depth,
            learn_task,
            balance,
            minhash,
            schedule,
        )
    }
)
