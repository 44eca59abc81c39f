"""What a server that others can reach is told: lists from the environment, checked at once."""

import pytest
from pydantic import ValidationError

from headlight.settings import Settings


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        (
            "cors_origins",
            "https://a.org, http://[::1]:8000",
            ("https://a.org", "http://[::1]:8000"),
        ),
        ("cors_origins", "*", ("*",)),
        ("trusted_proxies", "10.0.0.0/8,::1", ("10.0.0.0/8", "::1")),
    ],
)
def test_lists_are_separated_by_commas(monkeypatch, name, value, read):
    monkeypatch.setenv(f"HEADLIGHT_{name.upper()}", value)
    assert getattr(Settings(), name) == read


def test_everything_is_off_by_default():
    settings = Settings()
    assert (settings.api_keys, settings.cors_origins, settings.trusted_proxies) == ((), (), ())
    assert (settings.requests_per_minute, settings.strict_transport_seconds) == (0, 0)


@pytest.mark.parametrize(
    "origin", ["a.org", "https://a.org/", "https://A.org", "https://*.org", "null"]
)
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(ValidationError, match="an origin is a scheme and a host"):
        Settings(cors_origins=(origin,))


@pytest.mark.parametrize("proxy", ["*", "proxy", "10.0.0.1/8", "10.0.0"])
def test_what_is_no_address_is_refused(proxy):
    with pytest.raises(ValidationError, match="name an address or a network"):
        Settings(trusted_proxies=(proxy,))


@pytest.mark.parametrize("key", ["short", "with a space in it", "ключ-0123456789abcdef", "x" * 513])
def test_a_key_that_could_be_guessed_or_not_be_sent_is_refused_and_not_repeated(monkeypatch, key):
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
