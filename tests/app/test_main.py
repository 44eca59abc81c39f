"""The application as a whole: every route exists, is documented, and needs no other host."""

from headlight.main import create_app


def test_settings_come_from_the_environment_where_none_are_given(zoo, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_ZOO_DIR", str(zoo))
    monkeypatch.setenv("HEADLIGHT_DEFAULT_MODEL", "dense")
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    assert create_app().state.services.registry.describe().id == "dense"


def test_no_collector_is_told_anything_even_where_there_is_one(client, monkeypatch):
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", object)
    assert client.app._native_telemetry.enabled() is False
