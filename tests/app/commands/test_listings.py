"""What is listed: whole lines into a pipe, and JSON for programs."""

import json
import os
import subprocess
import sys

import pytest

from headlight.settings import Settings

SECRET = "0123456789abcdefSECRET"


def test_into_a_pipe_no_line_is_wrapped_or_padded(zoo, model_ids):
    """However narrow the terminal that the pipe starts from."""
    told = {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny", "COLUMNS": "20"}
    command = [sys.executable, "-m", "headlight.cli", "models"]
    lines = subprocess.check_output(command, env=os.environ | told, text=True).splitlines()
    assert [line.split()[0] for line in lines] == ["id", *model_ids]
    assert [line for line in lines if line != line.rstrip()] == []
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("command", ["limits", "settings"])
def test_what_is_described_is_a_line_where_no_terminal_is(headlight, monkeypatch, command):
    monkeypatch.setattr("headlight.commands.output.console.width", 20)
    lines = headlight(command).stdout.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    limits = Settings().limits()
    for name, field in Settings.model_fields.items():
        if (name in limits) == (command == "limits"):
            assert f"  {field.description}" in lines


def test_limits_as_json_are_what_the_api_answers(headlight, client):
    assert (
        json.loads(headlight("limits", "--json").stdout).keys()
        == client.get("/api/v1/limits").json().keys()
    )
    found = json.loads(headlight("limits", "--json").stdout)["max_cells"]
    assert found["value"] == Settings().max_cells
    assert found["env"] == "HEADLIGHT_MAX_CELLS"


def test_settings_as_json_have_every_other_setting_and_no_key(headlight, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_API_KEYS", SECRET)
    told = headlight("settings", "--json").stdout
    found = json.loads(told)
    assert found.keys() == Settings.model_fields.keys() - Settings().limits().keys()
    assert found["device"]["value"] == "cpu"
    assert found["device"]["env"] == "HEADLIGHT_DEVICE"
    assert len(found["api_keys"]["value"]) == 1
    assert "SECRET" not in told
