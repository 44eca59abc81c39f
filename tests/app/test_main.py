"""The application as a whole: every route exists, is documented, and needs no other host."""

import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from fastapi.testclient import TestClient

from headlight.main import create_app
from headlight.static_files import STATIC_URL


def test_settings_come_from_the_environment_where_none_are_given(zoo, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_ZOO_DIR", str(zoo))
    monkeypatch.setenv("HEADLIGHT_DEFAULT_MODEL", "dense")
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    assert create_app().state.services.registry.describe().id == "dense"


def test_no_collector_is_told_anything_even_where_there_is_one(client, monkeypatch):
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", object)
    assert client.app._native_telemetry.enabled() is False


@pytest.mark.parametrize("fails", [False, True])
def test_the_page_is_there_before_the_services_and_calls_wait(settings, monkeypatch, fails):
    app, may_open, heard = create_app(settings, is_early=True), Event(), []
    work = (lambda: 1 / 0) if fails else app.state.open_services
    app.state.open_services = lambda: may_open.wait() and work()
    monkeypatch.setattr(signal, "raise_signal", heard.append)
    with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor() as pool:
        try:
            waiting = pool.submit(client.get, "/healthz")
            assert client.get("/").status_code == 200
            assert client.get(f"{STATIC_URL}/css/page.css").status_code == 200
            assert not waiting.done()
        finally:
            may_open.set()
        assert waiting.result().status_code == (503 if fails else 200)
    assert heard == [signal.SIGTERM] * fails
    assert isinstance(app.state.failure, ZeroDivisionError) == fails
