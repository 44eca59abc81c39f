"""Every experiment is declared, described, seeded, finite, and within its estimate."""

import numpy as np
import pytest

from headlight.model.lab.experiments.experiment import MAX_MEGABYTES, MAX_SECONDS, collect
from headlight.model.lab.experiments.registry import EXPERIMENTS

# Small enough for seconds in all.
SMALL = {
    "by_hand": {},
    "scaling": {"width": 32},
    "recurrence": {"length": 8, "width": 6},
    "depth": {"n_layers": 3, "d_model": 8},
    "learn_task": {"steps": 3, "d_model": 8, "batch": 4, "length": 3},
    "balance": {"steps": 3, "n_experts": 3, "d_model": 4},
    "minhash": {"n_hashes": 16},
    "schedule": {"steps": 20, "optimizer_steps": 5},
}


@pytest.fixture(scope="module")
def small_frames():
    return {name: list(EXPERIMENTS[name].start(values)) for name, values in SMALL.items()}


def test_all_are_tested():
    assert set(EXPERIMENTS) == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_a_result_has_the_declared_arrays_of_finite_numbers(name, small_frames):
    experiment, frames = EXPERIMENTS[name], small_frames[name]
    result, sizes = collect(frames), {}
    # Only of one example, and of a context that was given.
    optional = {"printed_weights", "printed_context", "formula_context"}
    assert set(experiment.quantities) - optional == set(result)
    assert experiment.is_streamed == (len(frames) > 1)
    for key, array in result.items():
        for axis, size in zip(array.axes, array.data.shape, strict=True):
            assert sizes.setdefault(axis, size) == size, axis
        if array.data.dtype.kind == "f":
            assert np.isfinite(array.data).all(), key


@pytest.mark.parametrize("name", SMALL)
def test_equal_seeds_give_equal_numbers(name, small_frames):
    again = EXPERIMENTS[name].result(SMALL[name])
    for key, array in collect(small_frames[name]).items():
        np.testing.assert_array_equal(array.data, again[key].data)


@pytest.mark.parametrize(
    "name", sorted(set(SMALL) - {"by_hand", "schedule"})
)  # nothing there is drawn
def test_another_seed_gives_other_numbers(name, small_frames):
    other = EXPERIMENTS[name].result({**SMALL[name], "seed": 5})
    assert any(
        array.data.shape != other[key].data.shape or (array.data != other[key].data).any()
        for key, array in collect(small_frames[name]).items()
    )


@pytest.mark.parametrize("name", SMALL)
def test_a_default_run_is_within_the_limits(name):
    experiment = EXPERIMENTS[name]
    cost = experiment.cost(experiment.validate({}))
    assert 0 < cost.seconds <= MAX_SECONDS * 2 / 3
    assert 0 < cost.megabytes <= MAX_MEGABYTES


@pytest.mark.parametrize("name", SMALL)
def test_everything_is_described(name):
    experiment = EXPERIMENTS[name]
    assert experiment.id == name
    assert len(experiment.see) > 200
    assert len(experiment.field) > 200
    assert experiment.sources
    assert all(source.url.startswith("https://") for source in experiment.sources)
    schema = experiment.parameters.model_json_schema()
    for parameter in schema["properties"].values():
        assert parameter["description"]
        assert "default" in parameter
        if parameter.get("type") in ("integer", "number"):
            assert {"minimum", "exclusiveMinimum"} & set(parameter)
            assert {"maximum", "exclusiveMaximum"} & set(parameter)
