"""The configuration of a run: hyperparameters, recipes, and changes by name."""

import datetime
from typing import Any

import pytest

from headlight.lab.training.config import LoopConfig, change, check, merge, settings_of
from headlight.lab.training.run import RECIPES

STORIES = RECIPES["stories"]


def rejection(changes, recipe="stories"):
    """Return the message of the error that these changes raise."""
    with pytest.raises(ValueError, match=r".") as caught:
        change(RECIPES[recipe], changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("learning_rate", 0.0),
        ("seed", 2**64),
        ("decay", 1.5),
        ("smoothing", 1.0),
        ("optimizer", "sgd"),
        ("schedule", "flat"),
    ],
)
def test_a_hyperparameter_out_of_range_is_rejected(name, value):
    with pytest.raises(ValueError, match=rf"^{name} \(?'?{value}") as caught:
        LoopConfig(**{name: value})
    assert ("choose one of" if isinstance(value, str) else " must ") in str(caught.value)


@pytest.mark.parametrize("n_layers", [1, 2, 7])
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_number_of_layers_can_be_changed_alone(recipe, n_layers):
    model = change(RECIPES[recipe], {"model.n_layers": n_layers}).model
    assert model.n_layers == n_layers
    if RECIPES[recipe].model.moe:
        assert model.moe
        assert model.moe.layers == tuple(range(n_layers))


def test_the_layers_with_experts_that_were_given_stay():
    moe = change(STORIES, {"model.n_layers": 6, "model.moe.layers": [0, 5]}).model.moe
    assert moe
    assert moe.layers == (0, 5)
    assert change(STORIES, {"model.n_layers": 6, "model.moe": None}).model.moe is None
    assert "moe.layers" in rejection({"model.n_layers": 2, "model.moe.layers": [0, 1, 2, 3]})


def test_names_with_dots_and_nested_mappings_change_the_same_settings():
    dotted, nested = settings_of(STORIES), settings_of(STORIES)
    merge(dotted, {"loop.steps": 7, "model.moe.n_experts": 4, "model.moe.top_k": 1})
    merge(nested, {"loop": {"steps": 7}, "model": {"moe": {"n_experts": 4, "top_k": 1}}})
    assert dotted == nested
    checked = check(dotted, STORIES)
    assert checked.loop.steps == 7
    assert checked.model.moe is not None
    assert (checked.model.moe.n_experts, checked.model.moe.top_k) == (4, 1)


def test_the_last_change_counts_and_leaves_the_recipe_alone():
    changes = {"model": {"moe": {"top_k": 1}}, "loop": {"steps": 7, "seed": 1}}
    settings: dict[str, Any] = {}
    merge(settings, changes)
    merge(settings, {"model.moe.top_k": 3, "loop.steps": 9})
    assert settings == {"model": {"moe": {"top_k": 3}}, "loop": {"steps": 9, "seed": 1}}
    assert changes["model"] == {"moe": {"top_k": 1}}
    assert settings_of(STORIES)["model"]["moe"]["top_k"] == 2


def test_stages_are_rows_of_numbers_or_mappings():
    stages = [[5, 32, 2], {"steps": 6, "tokens": 64, "text": 3}]
    read_stages = change(STORIES, {"rows.stages": stages}).rows.stages
    assert [(stage.steps, stage.tokens, stage.text) for stage in read_stages] == [
        (5, 32, 2),
        (6, 64, 3),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loop.steps": "ten"}, "loop.steps is 'ten'; it must be a valid integer"),
        ({"loop.decay": "a"}, "loop.decay is 'a'; it must be a valid number"),
        ({"loop.decay": float("nan")}, "loop.decay is nan; it must be a finite number"),
        ({"model.attention_bias": 1}, "model.attention_bias is 1; it must be a valid boolean"),
        ({"rows.stages": 5}, "rows.stages is 5; it must be a valid array"),
        ({"rows.stages": [[1]]}, "rows.stages.0.1 is missing"),
        ({"rows.stages": []}, "stages is empty"),
        ({"loop": 5}, "loop is 5; it must be a mapping"),
        ({"loop.seed": datetime.date(2026, 1, 1)}, "loop.seed is '2026-01-01'"),
        # values that the dataclasses themselves reject
        ({"loop.steps": 0}, "steps (0) must be at least 1"),
        ({"model.n_heads": 7}, "n_heads (7) must divide d_model (192)"),
        ({"model.moe.top_k": 9}, "top_k (9) must lie between 1 and 8"),
        # names
        ({"loop.step": 5}, "there is no setting 'loop.step'; did you mean 'loop.steps'?"),
        ({"rows.wheels": 5}, "there is no setting 'rows.wheels'; the settings of rows are stages="),
        ({"model.moe.topk": 5}, "there is no setting 'model.moe.topk'; did you mean 'model.moe.t"),
        ({"steps": 5}, "there is no setting 'steps'; every name begins with model, rows, loop"),
        (
            {"rows.stages": [{"steps": 1, "tokens": 32, "text": 1, "drawn": 2}]},
            "there is no setting 'rows.stages.0.drawn'; did you mean 'rows.stages'?",
        ),
        ({"loop.steps": "a", "loop.seed": "b"}, "loop.steps is 'a'; it must be a valid integer; l"),
    ],
)
def test_a_setting_that_is_wrong_is_named(changes, message):
    assert rejection(changes).startswith(message)


def test_settings_that_are_not_plain_data_are_rejected():
    nested: list[Any] = []
    nested.append(nested)
    assert rejection({"rows.stages": nested}).startswith("the settings ")
    assert rejection({"loop.optimizer": "\ud800"}).startswith("the settings ")
