"""Every experiment by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headlight.model.experiments import (
    balance,
    by_hand,
    cost,
    depth,
    feed_forward,
    flash,
    initialisation,
    learn_task,
    minhash,
    norms,
    order,
    projections,
    recurrence,
    scaling,
    schedule,
    softmax,
    thinking,
    tokenizer,
    warm_up,
)
from headlight.model.experiments.experiment import Experiment

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        module.EXPERIMENT.id: module.EXPERIMENT
        for module in (
            by_hand,
            projections,
            softmax,
            scaling,
            order,
            flash,
            recurrence,
            depth,
            initialisation,
            feed_forward,
            norms,
            balance,
            learn_task,
            warm_up,
            thinking,
            tokenizer,
            cost,
            minhash,
            schedule,
        )
    }
)
