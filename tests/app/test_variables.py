"""Variables that set nothing are named, with what was meant."""

import re
from pathlib import Path

import pytest

from headlight.settings import Settings
from headlight.variables import variable_of, warnings_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("HEADLIGHT_QEUE_LENGTH", "did you mean HEADLIGHT_QUEUE_LENGTH?"),
        ("HEADLIGHT_MODEL_DIR", "did you mean HEADLIGHT_MODELS_DIR?"),
        ("headlight_max_cell", "did you mean HEADLIGHT_MAX_CELLS?"),
        ("HEADLIGHT_X0Z9Q8", "`headlight settings` lists what does"),
    ],
)
def test_a_variable_that_sets_nothing_is_named_with_the_nearest_that_does(name, sentence):
    assert list(warnings_of([name, "PATH"])) == [f"{name} sets nothing; {sentence}"]


def test_what_sets_something_is_never_warned_of():
    names = [variable_of(setting) for setting in Settings.model_fields]
    assert list(warnings_of([*names, names[0].lower(), "HOME"])) == []


@pytest.mark.parametrize("file", ["Makefile", "compose.yaml", "README.md"])
def test_what_the_project_itself_names_is_known(file):
    assert list(warnings_of(re.findall(r"\bHEADLIGHT_\w+", (ROOT / file).read_text()))) == []
