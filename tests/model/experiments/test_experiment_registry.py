"""Every experiment is declared, described, seeded, finite, and within its estimate.

The tests of the page draw the results of these small runs, in tests/js/views/experiments/results/;
`HEADLIGHT_RENEW_RESULTS=1 pytest tests/model/experiments/test_experiment_registry.py` writes them.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from headlight.model.experiments.experiment import MAX_MEGABYTES, MAX_SECONDS, collect
from headlight.model.experiments.experiment_registry import EXPERIMENTS
from headlight.serving.experiment_runs import encoded_result

# Small enough for seconds in all.
SMALL = {
    "by_hand": {},
    "projections": {"steps": 3, "tokens": ["the", "animal", "slept", "because", "it", "<b>"]},
    "scaling": {"width": 32},
    "recurrence": {"length": 8, "width": 6},
    "depth": {"n_layers": 3, "d_model": 8},
    "learn_task": {"steps": 3, "d_model": 8, "batch": 4, "length": 3},
    "balance": {"steps": 3, "n_experts": 3, "d_model": 4},
    "minhash": {"n_hashes": 16},
    "softmax": {"scores": [10.0, 5.0, -1.0], "temperature": 2.0},
    "order": {"text": "the <b> bites the man", "d_model": 8, "offset": 2},
    "flash": {"n_keys": 6, "block": 2},
    "feed_forward": {"d_ff": 4, "steps": 3},
    "norms": {},
    "thinking": {"n_problems": 5, "n_chains": 2},
    "cost": {"n_tokens": 4, "d_model": 8, "megabytes": 1},
    "tokenizer": {"text": "<b> low low lower", "sample": "slow <b>", "n_merges": 5},
    "schedule": {"steps": 20, "optimizer_steps": 5},
    "surprise": {"text": "The <b> fox ran home."},
    "kv_cache": {"n_tokens": 6, "window": 3},
    "preference": {"first": "He <b> wept.", "second": "She was sad."},
    "rounding": {"row": 3},
    "distillation": {"text": "The <b> fox ran"},
    "overfitting": {"text": "the <b> bites the man " * 6, "steps": 3, "dropout": 0.5},
    "labels": {"steps": 3},
    "policy": {"question": "38*94", "seed": 1},
    "quality": {"text": "The <b> fox’s den.", "other": "It ran", "n_topics": 3},
    "steering": {"toward": "He <b> wept. | She was sad.", "away": "He was glad.", "text": "She"},
}

MEASURED = {"cost"}  # its times are of the moment
NOT_DRAWN = {"norms", "by_hand", "schedule", "softmax", "tokenizer", "surprise", "kv_cache"}
NOT_DRAWN |= {"preference", "rounding", "distillation"}
DRAWN = Path(__file__).parents[2] / "js" / "views" / "experiments" / "results"
WRITTEN_BY_HAND = {  # in results.js
    "by_hand",
    "scaling",
    "recurrence",
    "depth",
    "learn_task",
    "balance",
    "minhash",
    "schedule",
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
    optional |= {"head_weights", "joined", "output_weights", "output"}  # of several heads
    assert set(result) <= set(experiment.quantities)
    missing = set(experiment.quantities) - set(result)
    assert missing <= (optional if name == "by_hand" else set())
    assert experiment.is_streamed == (len(frames) > 1)
    for key, array in result.items():
        for axis, size in zip(array.axes, array.data.shape, strict=True):
            assert sizes.setdefault(axis, size) == size, axis
        if array.data.dtype.kind == "f":
            assert np.isfinite(array.data).all(), key


@pytest.mark.parametrize("name", sorted(set(SMALL) - MEASURED))
def test_equal_seeds_give_equal_numbers(name, small_frames):
    again = EXPERIMENTS[name].result(SMALL[name])
    for key, array in collect(small_frames[name]).items():
        np.testing.assert_array_equal(array.data, again[key].data)


@pytest.mark.parametrize("name", sorted(set(SMALL) - NOT_DRAWN - MEASURED))
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
    assert all(url.startswith("https://") for url in experiment.sources)
    schema = experiment.parameters.model_json_schema()
    for parameter in schema["properties"].values():
        assert parameter["description"]
        assert "default" in parameter
        if parameter.get("type") in ("integer", "number"):
            assert {"minimum", "exclusiveMinimum"} & set(parameter)
            assert {"maximum", "exclusiveMaximum"} & set(parameter)


def rounded(value):
    """Return nested lists whose numbers have six figures, as many as the drawings need."""
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


@pytest.mark.parametrize("name", sorted(set(SMALL) - WRITTEN_BY_HAND))
def test_the_results_that_the_tests_of_the_page_draw_are_those_of_small_runs(name, small_frames):
    experiment = EXPERIMENTS[name]
    parameters = experiment.validate(SMALL[name])
    answer = json.loads(encoded_result(experiment, parameters, collect(small_frames[name])))
    for array in answer["arrays"].values():
        array["data"] = rounded(array["data"])
    path = DRAWN / f"{name}.json"
    if os.environ.get("HEADLIGHT_RENEW_RESULTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(answer) + "\n")
    drawn = json.loads(path.read_text())
    assert drawn["parameters"] == answer["parameters"]
    assert set(drawn["arrays"]) == set(answer["arrays"])
    for key, array in answer["arrays"].items():
        assert {**drawn["arrays"][key], "data": None} == {**array, "data": None}, key
        if name in MEASURED and key.endswith("seconds"):
            continue
        if array["dtype"].startswith("float"):
            expected = np.array(array["data"], dtype=float)
            # Other processors round in other places; a small number may be only rounding.
            most = np.max(np.abs(expected), initial=0, where=np.isfinite(expected))
            near = max(1e-4 * most, np.finfo(np.float32).eps)
            np.testing.assert_allclose(
                np.array(drawn["arrays"][key]["data"], dtype=float), expected, rtol=1e-4, atol=near
            )
        else:
            assert drawn["arrays"][key]["data"] == array["data"], key
