"""GET /healthz and /readyz: alive, and able to answer."""

import threading

from fastapi.testclient import TestClient

import headlight.services
from headlight.main import create_app


def test_a_living_server_says_so(client):
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_warm_server_is_ready(client):
    assert client.get("/readyz").json() == {"status": "ready"}


def test_a_server_is_alive_but_not_ready_while_its_model_loads(settings, problem, monkeypatch):
    app = create_app(settings)
    may_load = threading.Event()
    real = headlight.services.trace_now
    patched = "headlight.services.trace_now"
    monkeypatch.setattr(patched, lambda *order: may_load.wait(20) and real(*order))
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/healthz").status_code == 200
        body = problem(client.get("/readyz"), 503, "not-ready")
        assert body["detail"] == "the default model is being loaded"
        may_load.set()


def test_a_server_without_its_default_model_says_why_it_is_not_ready(client_with, problem):
    client = client_with(default_model="gone")
    while "being loaded" in (response := client.get("/readyz")).text:
        pass
    assert "there is no model 'gone'" in problem(response, 503, "not-ready")["detail"]
