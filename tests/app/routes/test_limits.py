"""GET /api/v1/limits: every limit in force, and each of them true."""

import pytest

from headlight.schemas import generation, traces


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


def test_the_environment_variable_of_each_is_named(limits):
    assert limits["max_cells"]["env"] == "HEADLIGHT_MAX_CELLS"
    assert limits["max_tokens"]["env"] is None


def test_tokens_are_limited_by_model(limits, model_ids):
    assert limits["max_tokens"]["value"] == dict.fromkeys(model_ids, 64)


def test_every_limit_of_the_request_is_shown(limits):
    modules = (traces, generation)
    of_requests = {
        name.lower() for module in modules for name in vars(module) if name.startswith("MAX_")
    }
    assert of_requests <= set(limits)


def test_what_is_shown_is_what_holds(client, limits, problem):
    n_globs = limits["max_globs"]["value"]
    n_characters = limits["max_glob_characters"]["value"]
    for capture in (["*"] * (n_globs + 1), ["*" * (n_characters + 1)]):
        response = client.post("/api/v1/trace", json={"text": "a", "capture": capture})
        problem(response, 422, "invalid-request")
    n_models = limits["max_model_id_characters"]["value"]
    response = client.post("/api/v1/trace", json={"text": "a", "model": "m" * (n_models + 1)})
    body = problem(response, 422, "invalid-request")
    assert (body["limit"], body["actual"]) == (n_models, n_models + 1)
    n_analyses = limits["max_analyses"]["value"]
    asked = {"text": "a", "analyses": ["next_token"] * (n_analyses + 1)}
    body = problem(client.post("/api/v1/trace", json=asked), 422, "invalid-request")
    assert (body["limit"], body["actual"]) == (n_analyses, n_analyses + 1)
    n_edits = limits["max_edits"]["value"]
    asked = {"text": "a", "edits": [{"kind": "no_scaling"}] * (n_edits + 1)}
    body = problem(client.post("/api/v1/trace", json=asked), 422, "invalid-request")
    assert (body["limit"], body["actual"]) == (n_edits, n_edits + 1)
    allowed = ["*" * n_characters] * n_globs
    response = client.post("/api/v1/trace", json={"text": "a", "capture": allowed})
    assert response.status_code == 200


def test_a_limit_that_was_set_is_shown(client_with):
    assert client_with(max_cells=99).get("/api/v1/limits").json()["max_cells"]["value"] == 99
