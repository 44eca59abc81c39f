"""`headlight serve`: every option a setting, every setting a variable, every mistake a sentence."""

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from headlight import server
from headlight.cli import app
from headlight.settings import Settings

SERVE = get_command(app).commands["serve"]
OPTIONS = {option.name: option for option in SERVE.params if option.name != "help"}
SECRET = "0123456789abcdefSECRET"


@pytest.fixture
def headlight(monkeypatch):
    """Return a function that runs a command, without colours; no server starts."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr("headlight.commands.output.console.width", 400)
    served = []
    monkeypatch.setattr(server, "serve", lambda listener, host, settings: served.append(settings))

    def run(*words, **variables):
        result = CliRunner().invoke(app, list(words), env=variables)
        result.served = served[-1] if served else None
        return result

    return run


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_a_setting_and_names_its_variable(name):
    setting = OPTIONS[name].envvar.removeprefix("HEADLIGHT_").lower()
    assert setting == name
    assert setting in Settings.model_fields


def test_variables_stand_in_for_options(headlight):
    told = {"HEADLIGHT_HOST": "localhost", "HEADLIGHT_PORT": "0", "HEADLIGHT_LOG_LEVEL": "info"}
    served = headlight("serve", **told).served
    assert (served.host, served.port, served.log_level) == ("localhost", 0, "info")


def test_an_option_wins_over_its_variable(headlight):
    told = {"HEADLIGHT_PORT": "1", "HEADLIGHT_THREADS": "3"}
    served = headlight("serve", "--port", "0", "--threads", "2", **told).served
    assert (served.port, served.threads) == (0, 2)


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("HEADLIGHT_PORT", "http", "Invalid value for '--port' (env var: 'HEADLIGHT_PORT')"),
        ("HEADLIGHT_API_KEYS", "short", "HEADLIGHT_API_KEYS: key 1 is not 16 to 512"),
        ("HEADLIGHT_HOST", "no such host", "host:0: there is no such address here"),
    ],
)
def test_a_wrong_value_is_one_clear_sentence(headlight, variable, value, sentence):
    result = headlight("serve", **({"HEADLIGHT_PORT": "0"} | {variable: value}))
    assert result.exit_code != 0
    assert result.served is None
    assert sentence in result.output + result.stderr
    assert "Traceback" not in result.output + result.stderr


def test_a_listed_setting_is_what_the_environment_says(headlight):
    told = {"HEADLIGHT_ALLOWED_HOSTS": "a.example.org, b.example.org", "HEADLIGHT_API_KEYS": SECRET}
    lines = headlight("settings", **told).output.splitlines()
    assert "HEADLIGHT_ALLOWED_HOSTS  a.example.org,b.example.org" in lines
    assert "HEADLIGHT_API_KEYS  (1, not shown)" in lines
    assert not any("SECRET" in line for line in lines)
