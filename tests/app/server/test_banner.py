"""The banner that the server prints when it starts."""

import io

import pytest
from rich.console import Console

from headlight.models.model_registry import registry_of
from headlight.server import announce, greet, is_loopback
from headlight.services import Services

SECRET = "0123456789abcdefSECRET"


@pytest.fixture
def said(settings):
    """Return a function that prints the banner of changed settings."""

    def print_it(**changed):
        console = Console(file=io.StringIO(), width=100, highlight=False, markup=False)
        told = settings.model_validate({**settings.model_dump(), **changed})
        announce(console, "http://127.0.0.1:8000")
        greet(console, Services(told))
        return console.file.getvalue()

    return print_it


def test_address_model_limits_and_access_take_a_line_each(said):
    lines = [line.rstrip() for line in said(requests_per_minute=60, cache_bytes=2**26).splitlines()]
    assert lines == [
        "Headlight is at http://127.0.0.1:8000 (API: http://127.0.0.1:8000/docs)",
        "model   tiny and 5 more · cpu · float32 · 1 thread",
        "limits  8,000 characters · 16 M numbers · 64 waiting · 8 streams · 64 MiB cache",
        "access  this machine only · no key · 60 calls a minute each",
        "Ctrl-C stops.",
    ]


def test_a_rate_limit_is_counted_in_each_worker(said):
    assert "60 calls a minute each in each worker" in said(requests_per_minute=60, workers=2)


def test_where_others_can_reach_it_what_to_mind_is_said(said):
    text = said(host="0.0.0.0")
    assert "other machines, too" in text
    assert "It answers to localhost, 127.0.0.1, [::1]; HEADLIGHT_ALLOWED_HOSTS names more." in text
    assert "HEADLIGHT_API_KEYS" in text
    assert "HEADLIGHT_REQUESTS_PER_MINUTE" in text


def test_a_key_is_never_printed(said):
    assert "SECRET" not in said(host="0.0.0.0", api_keys=SECRET)


def test_a_damaged_model_is_named_once_in_the_log(said, settings, tmp_path, caplog):
    (tmp_path / "broken").mkdir()
    assert "broken" not in said(models_dir=tmp_path)
    assert registry_of(settings.model_copy(update={"models_dir": tmp_path})).listed
    assert caplog.text.count("broken holds no model (config.json is missing)") == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_only_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_anything_else_is_not(host):
    assert not is_loopback(host)
