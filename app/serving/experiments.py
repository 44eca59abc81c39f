"""The experiments that are offered, and their descriptions as they are sent."""

from __future__ import annotations

from collections.abc import Mapping

from headlight.model.experiments.experiment import GROWING, Experiment
from headlight.schemas.experiments import ExperimentAnswer, QuantityAnswer, SourceAnswer


def known_experiments() -> Mapping[str, Experiment]:
    """Return every experiment, imported on the first call: they import what trains models."""
    from headlight.model.experiments.experiment_registry import EXPERIMENTS

    return EXPERIMENTS


def experiment_tabs() -> dict[str, list[Experiment]]:
    """Return the experiments by the group of their tabs."""
    tabs: dict[str, list[Experiment]] = {}
    for each in known_experiments().values():
        tabs.setdefault(each.group, []).append(each)
    return tabs


def experiment_answer(definition: Experiment) -> ExperimentAnswer:
    """Return the description of an experiment as it is sent."""
    return ExperimentAnswer(
        id=definition.id,
        title=definition.title,
        is_streamed=definition.is_streamed,
        see=definition.see,
        field=definition.field,
        sources=[SourceAnswer(title=title, url=url) for url, title in definition.sources.items()],
        parameters=definition.parameters.model_json_schema(),
        arrays={
            name: QuantityAnswer(axes=each.axes.split(), unit=each.unit, help=each.help)
            for name, each in definition.quantities.items()
        },
        growing=list(GROWING),
    )
