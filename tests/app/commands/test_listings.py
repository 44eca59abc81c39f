"""Lists of models, limits and settings: for people, into a pipe, as JSON."""

import json

from headlight.settings import Settings

SECRET = "0123456789abcdefSECRET"


def test_models_are_listed_with_their_facts(headlight):
    rows = {row.split()[0]: row for row in headlight("models").output.splitlines()}
    assert rows["tiny"].split()[1] == "decoder"
    assert "2 of 4" in rows["tiny"]
    assert " 0.0 M" not in rows["tiny"]
    assert "dense" in rows["dense"].split()[2:]
    assert rows["translator"].split()[1] == "encoder-decoder"
    assert rows["filler"].split()[1] == "encoder"


def test_a_folder_without_a_usable_model_is_listed_with_the_reason(headlight, tmp_path):
    (tmp_path / "broken").mkdir()
    result = headlight("models", "--models-dir", str(tmp_path))
    assert result.exit_code == 0
    assert result.output.count("broken holds no model (config.json is missing)") == 1


def test_a_missing_device_is_a_failure(headlight, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_DEVICE", "mps")
    result = headlight("models")
    assert result.exit_code == 1
    assert "mps" in result.stderr


def test_limits_are_those_of_a_server_started_here(headlight, monkeypatch, client):
    monkeypatch.setenv("HEADLIGHT_MAX_CELLS", "98765")
    result = headlight("limits")
    assert result.exit_code == 0
    assert "max_cells  98,765 numbers" in result.output
    assert "\n  dense: 64 tokens\n" in result.output
    assert "422 too-many-cells · HEADLIGHT_MAX_CELLS" in result.output
    for name in client.get("/api/v1/limits").json():
        assert f"\n{name}  " in f"\n{result.output}"


def test_into_a_pipe_no_line_is_wrapped_or_padded(headlight, model_ids, monkeypatch):
    monkeypatch.setattr("headlight.commands.output.console.width", 20)
    lines = headlight("models").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["id", *model_ids]
    assert [line for line in lines if line != line.rstrip()] == []
    assert len({len(line) for line in lines}) == 1


def test_limits_as_json_are_those_of_the_api(headlight, client):
    printed = json.loads(headlight("limits", "--json").stdout)
    assert printed.keys() == client.get("/api/v1/limits").json().keys()
    assert printed["max_cells"]["value"] == Settings().max_cells
    assert printed["max_cells"]["env"] == "HEADLIGHT_MAX_CELLS"


def test_settings_as_json_have_every_other_setting_and_no_key(headlight, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_API_KEYS", SECRET)
    printed = headlight("settings", "--json").stdout
    settings = json.loads(printed)
    assert settings.keys() == Settings.model_fields.keys() - Settings().limits().keys()
    assert settings["device"]["value"] == "cpu"
    assert settings["device"]["env"] == "HEADLIGHT_DEVICE"
    assert len(settings["api_keys"]["value"]) == 1
    assert "SECRET" not in printed
