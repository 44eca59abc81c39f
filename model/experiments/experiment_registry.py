"""Every experiment by its name: that of each module of this package that has an `EXPERIMENT`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headlight.model import experiments
from headlight.model.discovery import import_all
from headlight.model.experiments.experiment import Experiment


def _experiments() -> list[Experiment]:
    modules = import_all(experiments.__name__, experiments.__path__)
    listed = [module.EXPERIMENT for module in modules if hasattr(module, "EXPERIMENT")]
    return sorted(listed, key=lambda experiment: experiment.order)


EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({each.id: each for each in _experiments()})
