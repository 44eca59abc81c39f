"""Settings as people write them: in a file, and one by one on the command line."""

import re
from pathlib import Path
from typing import Any

import pytest

from headlight.commands.training_settings import read_settings, read_settings_file


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("6E3", 6000.0),
        ("1.5e-3", 0.0015),
        ("2.e1", 20.0),
        (".inf", float("inf")),
        ("true", True),
        ("null", None),
        ("", None),
        ("muon", "muon"),
        ("[0, 1]", [0, 1]),
        ("{n_experts: 4}", {"n_experts": 4}),
        ("a=b", "a=b"),
        ("e5", "e5"),
    ],
)
def test_a_value_is_read_as_yaml(written: str, value: Any) -> None:
    found = read_settings([f"loop.x={written}"])
    assert found == {"loop": {"x": value}}
    assert type(found["loop"]["x"]) is type(value)


def test_settings_are_gathered_by_their_parts() -> None:
    found = read_settings(["loop.steps=5", "model.d_model = 64", "loop.steps=6", "loop.seed=1"])
    assert found == {"loop": {"steps": 6, "seed": 1}, "model": {"d_model": 64}}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("loop.steps", "'loop.steps' sets nothing; write NAME=VALUE"),
        ("loop.steps=[", "the value of loop.steps is no YAML: "),
        ("loop.steps={a: 1, a: 2}", "the value of loop.steps is no YAML: 'a' is there twice"),
        ("loop.steps=!!python/name:os.system x", "the value of loop.steps is no YAML: "),
        ("loop.steps=2026-13-45", "the value of loop.steps is no YAML: "),
        ("loop.steps=\0", "the value of loop.steps is no YAML: "),
        ("loop.steps=*a", "the value of loop.steps is no YAML: "),
        ("loop.steps=" + "[" * 1000, "the value of loop.steps is no YAML: "),
        ("loop.steps=" + "9" * 5000, "the value of loop.steps is no YAML: "),
        ("loop.steps={[1]: 2}", "the value of loop.steps is no YAML: "),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(assignment: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        read_settings([assignment])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_file_holds_parts_with_names_and_values(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("# mine\nmodel:\n  d_model: 64\nloop:\n  learning_rate: 1e-3\nrows:\n")
    assert read_settings_file(path) == {"model": {"d_model": 64}, "loop": {"learning_rate": 0.001}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", " holds no settings; write them as 'loop:', then '  steps: 100'"),
        (b"- 1\n", " holds no settings; write them as 'loop:', then '  steps: 100'"),
        (b"loop:\n  steps: 1\nloop:\n  seed: 2\n", ", line 3 is no YAML: 'loop' is there twice"),
        (b"loop:\n  steps: 1\n  steps: 2\n", ", line 3 is no YAML: 'steps' is there twice"),
        (b"loop:\n\tsteps: 1\n", ", line 2 is no YAML: found character '\\t'"),
        (b"loop: caf\xe9\n", " is not UTF-8"),
    ],
)
def test_a_file_that_holds_no_settings_is_named(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}{message}')}"):
        read_settings_file(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} cannot be read: No such file"):
        read_settings_file(path)
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        read_settings_file(tmp_path)
