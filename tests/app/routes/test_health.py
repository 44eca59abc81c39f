"""Health, limits, metrics and the documentation."""

import re
import threading

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

import headlight.services
from headlight.main import create_app
from headlight.schemas import generation, traces


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


def test_the_page_loads_nothing_from_another_host_and_has_no_inline_script(client):
    page = client.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "http" not in page.text
    assert re.findall(r"<script[^>]*>([^<]+)</script>", page.text) == []


def test_everything_the_page_names_is_there(client):
    named = re.findall(r'(?:src|href)="([^"]+)"', client.get("/docs").text)
    assert len(named) == 5
    for path in named:
        assert client.get(path).status_code == 200, path


@pytest.fixture
def limits(client):
    return client.get("/api/v1/limits").json()


def test_every_limit_has_a_value_a_unit_and_a_reason(limits):
    assert {
        "max_characters",
        "max_cells",
        "max_body_bytes",
        "queue_length",
        "queue_seconds",
        "max_tokens",
    } <= set(limits)
    for limit in limits.values():
        assert set(limit) == {"value", "unit", "reason", "refusal", "env"}
        assert limit["unit"]
        assert limit["reason"]


def test_every_limit_of_the_request_is_shown(limits):
    modules = (traces, generation)
    of_requests = {
        name.lower() for module in modules for name in vars(module) if name.startswith("MAX_")
    }
    assert of_requests <= set(limits)


def read(client):
    """Return every sample, by name and labels."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_what_runs_is_told(client):
    labels = [dict(labels) for name, labels in read(client) if name == "headlight_info"]
    assert len(labels) == 1
    assert labels[0]["model"] == "tiny"
    assert labels[0]["device"] == "cpu"


def test_two_applications_count_for_themselves(client, client_with):
    other_client = client_with()
    other_client.app.state.services.metrics.cache_hits.inc(41)
    assert read(other_client)["headlight_cache_hits_total", ()] == 41
    assert read(client)["headlight_cache_hits_total", ()] != 41


def test_tokens_that_are_written_are_counted(client):
    before = read(client)["headlight_tokens_written_total", ()]
    answer = client.post("/api/v1/generate", json={"text": "the cat", "n_tokens": 3})
    n_tokens = answer.text.count("event: token")
    assert n_tokens > 0
    assert read(client)["headlight_tokens_written_total", ()] == before + n_tokens
