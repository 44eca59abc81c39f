"""Every limit and knob comes from the environment, once."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from headlight.settings import Settings
from headlight.variables import BESIDE_SETTINGS

README = Path(__file__).parents[2] / "README.md"


def test_the_environment_sets_a_limit(monkeypatch):
    monkeypatch.setenv("HEADLIGHT_MAX_CELLS", "123")
    assert Settings().max_cells == 123
    assert Settings().limits()["max_cells"].value == 123


def test_an_empty_variable_is_none(monkeypatch):
    monkeypatch.setenv("HEADLIGHT_MODELS_DIR", "")
    monkeypatch.setenv("HEADLIGHT_DEVICE", "")
    assert (Settings().models_dir, Settings().device) == (None, "auto")


def test_what_is_given_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cuda")
    assert Settings(device="cpu").device == "cpu"


def test_hosts_are_separated_by_commas(monkeypatch):
    monkeypatch.setenv("HEADLIGHT_ALLOWED_HOSTS", "example.org, *.example.com ,")
    assert Settings().allowed_hosts == ("example.org", "*.example.com")


@pytest.mark.parametrize("hosts", ["a.*", "*.*.org", "*x", ""])
def test_hosts_that_cannot_be_matched_are_refused(hosts):
    with pytest.raises(ValidationError, match=r"wildcard|no host is allowed"):
        Settings(allowed_hosts=hosts)


@pytest.mark.parametrize(
    ("name", "value"), [("max_cells", 0), ("queue_seconds", 0), ("queue_length", -1)]
)
def test_a_limit_nobody_could_meet_is_refused(name, value):
    with pytest.raises(ValidationError, match=name):
        Settings(**{name: value})


def test_an_unknown_device_is_refused():
    with pytest.raises(ValidationError, match="'auto', 'cpu', 'cuda' or 'mps'"):
        Settings(device="tpu")


def test_every_limit_has_a_unit_a_reason_and_a_variable():
    limits = Settings().limits()
    assert {"max_characters", "max_cells", "max_body_bytes", "queue_length"} <= set(limits)
    for name, limit in limits.items():
        assert limit.unit
        assert len(limit.reason) > 20
        assert limit.env == f"HEADLIGHT_{name.upper()}"


def test_the_body_has_room_for_the_longest_text_in_escapes():
    assert Settings().max_body_bytes >= 12 * Settings().max_characters


def test_settings_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Settings().max_cells = 5


@pytest.mark.parametrize(
    ("host", "added"),
    [
        ("192.0.2.7", ("192.0.2.7",)),
        ("2001:db8::1", ("[2001:db8::1]",)),
        ("0.0.0.0", ()),
        ("::", ()),
        ("127.0.0.1", ()),
        ("::1", ()),
    ],
)
def test_a_server_answers_to_the_address_it_is_served_on(host, added):
    settings = Settings()
    assert settings.answering_to(host).allowed_hosts == (*settings.allowed_hosts, *added)


def test_every_variable_that_the_readme_names_sets_something():
    named = set(re.findall(r"\bHEADLIGHT_([A-Z_]+)", README.read_text()))
    assert {"API_KEYS", "ALLOWED_HOSTS", "REQUESTS_PER_MINUTE"} <= named
    assert {name.lower() for name in named} <= set(Settings.model_fields) | BESIDE_SETTINGS
