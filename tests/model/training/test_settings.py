"""Settings by name: put together, checked, and refused in one sentence."""

import datetime
import re
from typing import Any

import pytest

from headlight.model.training.run import RECIPES
from headlight.model.training.settings import check, merge, settings_of

STORIES = RECIPES["stories"]


def refused(changes: dict[str, Any], recipe: str = "stories") -> str:
    """What is said to these changes."""
    settings = settings_of(RECIPES[recipe])
    merge(settings, changes)
    with pytest.raises(ValueError, match=r".") as caught:
        check(settings, RECIPES[recipe])
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_unchanged_is_the_recipe(recipe: str) -> None:
    found = check(settings_of(RECIPES[recipe]), RECIPES[recipe])
    assert found.model == RECIPES[recipe].model
    assert found.rows == RECIPES[recipe].rows
    assert found.loop == RECIPES[recipe].loop


def test_names_with_dots_and_nested_mappings_change_the_same_settings() -> None:
    dotted, nested = settings_of(STORIES), settings_of(STORIES)
    merge(dotted, {"loop.steps": 7, "model.moe.n_experts": 4, "model.moe.top_k": 1})
    merge(nested, {"loop": {"steps": 7}, "model": {"moe": {"n_experts": 4, "top_k": 1}}})
    assert dotted == nested
    found = check(dotted, STORIES)
    assert found.loop.steps == 7
    assert found.model.moe is not None
    assert (found.model.moe.n_experts, found.model.moe.top_k) == (4, 1)
    assert found.model.moe.layers == (0, 1, 2, 3)


def test_the_last_change_counts() -> None:
    settings = settings_of(STORIES)
    merge(settings, {"loop": {"steps": 7, "seed": 1}})
    merge(settings, {"loop.steps": 9})
    assert check(settings, STORIES).loop.steps == 9
    assert check(settings, STORIES).loop.seed == 1


def test_merging_leaves_the_recipe_and_the_changes_alone() -> None:
    changes = {"model": {"moe": {"top_k": 1}}}
    settings: dict[str, Any] = {}
    merge(settings, changes)
    merge(settings, {"model.moe.top_k": 3})
    assert changes == {"model": {"moe": {"top_k": 1}}}
    assert settings_of(STORIES)["model"]["moe"]["top_k"] == 2


def test_experts_can_be_taken_away_and_given() -> None:
    without = settings_of(STORIES)
    merge(without, {"model.moe": None})
    assert check(without, STORIES).model.moe is None
    given = settings_of(RECIPES["translate"])
    merge(given, {"model.moe.n_experts": 4, "model.moe.top_k": 2, "model.moe.layers": [0]})
    moe = check(given, RECIPES["translate"]).model.moe
    assert moe is not None
    assert moe.n_experts == 4


def test_stages_are_rows_of_numbers_or_mappings() -> None:
    settings = settings_of(STORIES)
    merge(settings, {"rows.stages": [[5, 32, 2], {"steps": 6, "tokens": 64, "text": 3}]})
    stages = check(settings, STORIES).rows.stages
    assert [(stage.steps, stage.tokens, stage.text) for stage in stages] == [(5, 32, 2), (6, 64, 3)]


def test_a_whole_number_is_a_number() -> None:
    settings = settings_of(STORIES)
    merge(settings, {"loop.learning_rate": 1})
    assert check(settings, STORIES).loop.learning_rate == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loop.steps": "ten"}, "loop.steps is 'ten'; it must be a valid integer"),
        ({"loop.steps": True}, "loop.steps is True; it must be a valid integer"),
        ({"loop.steps": 2.0}, "loop.steps is 2.0; it must be a valid integer"),
        ({"loop.steps": None}, "loop.steps is None; it must be a valid integer"),
        ({"loop.steps.more": 1}, "loop.steps is {'more': 1}; it must be a valid integer"),
        ({"model.n_heads": 2.5}, "model.n_heads is 2.5; it must be a valid integer"),
        ({"rows.held_out": []}, "rows.held_out is []; it must be a valid integer"),
        ({"loop.decay": "a"}, "loop.decay is 'a'; it must be a valid number"),
        ({"loop.decay": True}, "loop.decay is True; it must be a valid number"),
        ({"loop.decay": float("nan")}, "loop.decay is nan; it must be a finite number"),
        ({"loop.optimizer": 5}, "loop.optimizer is 5; it must be a valid string"),
        ({"model.attention_bias": 1}, "model.attention_bias is 1; it must be a valid boolean"),
        ({"rows.stages": 5}, "rows.stages is 5; it must be a valid array"),
        ({"rows.stages": [[1]]}, "rows.stages.0.1 is missing"),
        ({"rows.stages": [[1, "a"]]}, "rows.stages.0.1 is 'a'; it must be a valid integer"),
        ({"rows.stages": []}, "stages is empty; a run needs at least one"),
        ({"loop": 5}, "loop is 5; it must be a mapping of names to values"),
        ({"model.moe": 5}, "model.moe is 5; it must be a mapping of names to values"),
        ({"model.moe.layers": ["a"]}, "model.moe.layers.0 is 'a'; it must be a valid integer"),
        (
            {"loop.seed": datetime.date(2026, 1, 1)},
            "loop.seed is '2026-01-01'; it must be a valid integer",
        ),
        # values that the dataclasses themselves refuse
        ({"loop.steps": 0}, "steps (0) must be at least 1"),
        ({"model.n_heads": 7}, "n_heads (7) must divide d_model (192)"),
        ({"model.moe.top_k": 9}, "top_k (9) must lie between 1 and 8"),
        # names
        ({"loop.step": 5}, "there is no setting 'loop.step'; did you mean 'loop.steps'?"),
        (
            {"model.d_modell": 5},
            "there is no setting 'model.d_modell'; did you mean 'model.d_model'?",
        ),
        ({"rows.heldout": 5}, "there is no setting 'rows.heldout'; did you mean 'rows.held_out'?"),
        (
            {"model.moe.topk": 5},
            "there is no setting 'model.moe.topk'; did you mean 'model.moe.top_k'?",
        ),
        ({"steps": 5}, "there is no setting 'steps'; all are of model, rows, loop"),
        ({"": 5}, "there is no setting ''; all are of model, rows, loop"),
        (
            {"rows.stages": [{"steps": 1, "tokens": 32, "text": 1, "drawn": 2}]},
            "there is no setting 'rows.stages.0.drawn'; did you mean 'rows.stages'?",
        ),
        # more than one
        (
            {"loop.steps": "a", "loop.seed": "b"},
            "loop.steps is 'a'; it must be a valid integer; "
            "loop.seed is 'b'; it must be a valid integer",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(changes: dict[str, Any], message: str) -> None:
    assert refused(changes) == message


def test_a_long_value_is_shown_in_part() -> None:
    assert len(refused({"loop.steps": "a" * 10_000})) < 100
    assert len(refused({"loop.steps": [[1] * 1000] * 1000})) < 200


def test_what_is_no_plain_data_is_refused() -> None:
    nested: list[Any] = []
    nested.append(nested)
    assert re.match("the settings ", refused({"rows.stages": nested}))
    assert re.match("the settings must be readable: ", refused({"loop.optimizer": "\ud800"}))


def test_a_setting_of_another_recipe_is_unknown() -> None:
    assert refused({"rows.stages": []}, "translate").startswith("there is no setting 'rows.stages'")
