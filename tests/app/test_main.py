"""The application as a whole: everything is there, documented, and needs no other host."""

import pytest

from headlight.main import create_app


@pytest.fixture(scope="module")
def openapi(client):
    return client.get("/openapi.json").json()


def test_every_call_says_what_it_does_and_how_it_fails(openapi):
    for path, methods in openapi["paths"].items():
        for operation in methods.values():
            assert operation["description"], path
            for status, response in operation["responses"].items():
                if status not in ("200", "304"):
                    assert list(response["content"]) == ["application/problem+json"]


def test_a_real_trace_is_what_the_documentation_says(client):
    from headlight.schemas.traces import TraceAnswer

    body = client.post("/api/v1/trace", json={"text": "the cat", "dtype": "uint16"}).json()
    TraceAnswer.model_validate(body, strict=True, extra="forbid")


def test_settings_come_from_the_environment_where_none_are_given(zoo, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_ZOO_DIR", str(zoo))
    monkeypatch.setenv("HEADLIGHT_DEFAULT_MODEL", "dense")
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    assert create_app().state.services.registry.describe().id == "dense"


def test_no_collector_is_told_anything_even_where_there_is_one(client, monkeypatch):
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", object)
    assert client.app._native_telemetry.enabled() is False
