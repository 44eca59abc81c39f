"""Settings come from the environment, are checked at once, and never change."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from headlight.settings import OTHER_VARIABLES, Settings, warnings_of

ROOT = Path(__file__).parents[2]


def test_an_empty_variable_sets_nothing(monkeypatch):
    monkeypatch.setenv("HEADLIGHT_MODELS_DIR", "")
    monkeypatch.setenv("HEADLIGHT_DEVICE", "")
    assert (Settings().models_dir, Settings().device) == (None, "auto")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("allowed_hosts", "example.org, *.example.com ,", ("example.org", "*.example.com")),
        ("cors_origins", "https://a.org, http://[::1]:80", ("https://a.org", "http://[::1]:80")),
        ("trusted_proxies", "10.0.0.0/8,::1", ("10.0.0.0/8", "::1")),
    ],
)
def test_lists_are_separated_by_commas(monkeypatch, name, value, expected):
    monkeypatch.setenv(f"HEADLIGHT_{name.upper()}", value)
    assert getattr(Settings(), name) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("allowed_hosts", hosts) for hosts in ("a.*", "*.*.org", "*x", "")),
        *(
            ("cors_origins", (origin,))
            for origin in ("a.org", "https://a.org/", "https://A.org", "https://*.org", "null")
        ),
        *(("trusted_proxies", (proxy,)) for proxy in ("*", "proxy", "10.0.0.1/8", "10.0.0")),
    ],
)
def test_an_impossible_value_is_rejected_by_name(name, value):
    with pytest.raises(ValidationError, match=name):
        Settings(**{name: value})


@pytest.mark.parametrize("key", ["short", "with a space in it", "ключ-0123456789abcdef", "x" * 513])
def test_an_unusable_key_is_rejected_and_not_repeated(monkeypatch, key):
    monkeypatch.setenv("HEADLIGHT_API_KEYS", f"good-0123456789abcdef,{key}")
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert "key 2 is not 16 to 512 visible characters" in str(caught.value)
    assert key not in str(caught.value)
    assert "good-" not in str(caught.value)


def test_keys_are_never_shown():
    key = "good-0123456789abcdef"
    settings = Settings(api_keys=(key,))
    assert settings.api_keys[0].get_secret_value() == key
    assert key not in repr(settings) + str(settings.model_dump()) + settings.model_dump_json()


def test_a_body_holds_the_longest_texts_as_escapes():
    assert Settings().max_body_bytes >= 2 * 12 * Settings().max_characters


def test_a_body_holds_the_longest_link():
    assert Settings(max_link_bytes=5_000_000).max_body_bytes > 5_000_000


@pytest.mark.parametrize(
    ("host", "added"),
    [
        ("192.0.2.7", ("192.0.2.7",)),
        ("2001:db8::1", ("[2001:db8::1]",)),
        ("::", ()),
        ("127.0.0.1", ()),
    ],
)
def test_a_server_answers_to_the_address_it_listens_on(host, added):
    settings = Settings()
    assert settings.answering_to(host).allowed_hosts == (*settings.allowed_hosts, *added)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("HEADLIGHT_QEUE_LENGTH", "HEADLIGHT_QUEUE_LENGTH"),
        ("HEADLIGHT_MODEL_DIR", "HEADLIGHT_MODELS_DIR"),
        ("HEADLIGHT_X0Z9Q8", "headlight settings"),
    ],
)
def test_a_variable_that_sets_nothing_is_reported_with_the_nearest(name, meant):
    [warning] = warnings_of([name, "PATH"])
    assert name in warning
    assert meant in warning


@pytest.mark.parametrize("file", ["Makefile", "compose.yaml", "README.md", "Dockerfile"])
def test_every_variable_that_the_project_names_is_known(file):
    named = re.findall(r"\bHEADLIGHT_\w+", (ROOT / file).read_text())
    assert list(warnings_of(named)) == []
    assert not OTHER_VARIABLES & set(Settings.model_fields)
