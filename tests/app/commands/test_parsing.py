"""Wrong settings and options are reported by name, value and rule, with exit code 2."""

from types import SimpleNamespace

import pytest

from headlight.commands.parsing import _without_types

SECRET = "a secret"


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("QUEUE_LENGTH", "-1", ": must be at least 0, not '-1'"),
        ("WORK_SECONDS", "nan", ": 'nan' is not a number"),
        ("WORK_SECONDS", "0", ": must be more than 0"),
        ("WORK_SECONDS", "soon", ": 'soon' is not a number"),
        ("MAX_CELLS", "1.5", ": '1.5' is not a whole number"),
        ("DEVICE", "tpu", ": 'tpu' is not one of "),
        ("CORS_ORIGINS", "a.org", ": 'a.org': "),
        ("ALLOWED_HOSTS", "https://x.org", ": 'https://x.org': "),
    ],
)
def test_a_variable_is_reported_with_its_value_and_the_rule(
    headlight, monkeypatch, variable, value, sentence
):
    monkeypatch.setenv(f"HEADLIGHT_{variable}", value)
    result = headlight("settings")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"HEADLIGHT_{variable}{sentence}")
    assert len(result.stderr.splitlines()) == 1


def test_all_errors_are_reported_together(headlight, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_QUEUE_LENGTH", "-1")
    monkeypatch.setenv("HEADLIGHT_MAX_CELLS", "0")
    lines = headlight("serve", "--precision", "int8").stderr.splitlines()
    assert sorted(line.split(": ")[0] for line in lines) == [
        "--precision",
        "HEADLIGHT_MAX_CELLS",
        "HEADLIGHT_QUEUE_LENGTH",
    ]


def test_a_key_is_not_repeated(headlight, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_API_KEYS", SECRET)
    reported = headlight("settings").stderr
    assert reported.startswith("HEADLIGHT_API_KEYS: key 1 is not 16 to 512 visible characters")
    assert SECRET not in reported


@pytest.mark.parametrize("words", [["serve"], ["trace", "a"], ["models"], ["limits"]])
def test_a_directory_of_models_must_exist(headlight, monkeypatch, tmp_path, words):
    folder = str(tmp_path / "nope")
    result = headlight(*words, "--models-dir", folder)
    assert result.exit_code == 2
    assert result.stderr == f"--models-dir is {folder}; there is no such folder\n"
    monkeypatch.setenv("HEADLIGHT_MODELS_DIR", folder)
    reported = headlight(*words).stderr
    assert reported == f"HEADLIGHT_MODELS_DIR is {folder}; there is no such folder\n"


def test_a_wrong_member_of_an_edit_is_reported_by_its_path(headlight):
    edits = '[{"kind": "temperature", "value": 0}, {"kind": "mood"}, {"kind": "heads_off"}, 3]'
    lines = headlight("trace", "a", "--edits", edits).stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "--edits.0.value",
        "--edits.1",
        "--edits.2.heads",
        "--edits.3",
    ]


def test_an_option_is_not_called_by_the_name_of_its_value():
    """As Typer 0.27 would have it."""
    (port,) = _without_types([SimpleNamespace(opts=["port", "--PORT"], is_flag=False)])
    assert port.opts == ["port", "--port"]
