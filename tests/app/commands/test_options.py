"""Wrong settings and options are reported by name, value and rule, with exit code 2."""

import pytest

SECRET = "a secret"


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("QUEUE_LENGTH", "-1", " is -1; it must be at least 0"),
        ("WORK_SECONDS", "nan", " is nan; it must be a finite number"),
        ("WORK_SECONDS", "inf", " is inf; it must be a finite number"),
        ("WORK_SECONDS", "0", " is 0; it must be more than 0"),
        ("WORK_SECONDS", "soon", " is soon; it must be a number"),
        ("MAX_CELLS", "1.5", " is 1.5; it must be a whole number"),
        ("DEVICE", "tpu", " is tpu; it must be auto, cpu, cuda or mps"),
        ("CORS_ORIGINS", "a.org", ": 'a.org': an origin is a scheme and a host in small letters"),
        ("ALLOWED_HOSTS", "https://x.org", ": 'https://x.org': a host name has no scheme, port"),
        ("ALLOWED_HOSTS", "x.org:80", ": 'x.org:80': a host name has no scheme, port or path"),
    ],
)
def test_a_variable_is_reported_with_its_value_and_the_rule(
    headlight, monkeypatch, variable, value, sentence
):
    monkeypatch.setenv(f"HEADLIGHT_{variable}", value)
    result = headlight("settings")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"HEADLIGHT_{variable}{sentence}")
    assert "Input should" not in result.stderr
    assert "Value error" not in result.stderr


def test_all_errors_are_reported_together(headlight, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_QUEUE_LENGTH", "-1")
    monkeypatch.setenv("HEADLIGHT_MAX_CELLS", "0")
    assert sorted(headlight("serve", "--precision", "int8").stderr.splitlines()) == [
        "--precision is int8; it must be float32 or bfloat16",
        "HEADLIGHT_MAX_CELLS is 0; it must be at least 1",
        "HEADLIGHT_QUEUE_LENGTH is -1; it must be at least 0",
    ]


def test_the_source_of_a_wrong_setting_is_named(headlight, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_PRECISION", "int8")
    assert headlight("serve").stderr.startswith("HEADLIGHT_PRECISION is int8; ")
    assert headlight("serve", "--precision", "int4").stderr.startswith("--precision is int4; ")


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
    assert headlight("trace", "a", "--edits", edits).stderr.splitlines() == [
        "--edits.0.value is 0; it must be at least 0.01",
        "--edits.1.kind is mood; it must be one of heads_off, experts_off, no_scaling, temperature",
        "--edits.2.heads is missing",
        "--edits.3 is 3; it must be an object",
    ]
