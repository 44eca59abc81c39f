"""HEAD is answered wherever GET is, as GET is but without a body."""

import httpx
import pytest
from fastapi.routing import iter_route_contexts

PATHS = ["/", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json", "/static/js/main.js"]
API = ["/api/v1/models", "/api/v1/models/tiny", "/api/v1/limits", "/api/v1/models/nobody"]


@pytest.mark.parametrize("path", PATHS + API)
def test_a_head_is_that_of_get_and_has_no_body(client, path):
    get, head = client.get(path), client.head(path)
    assert head.status_code == get.status_code
    assert head.content == b""
    assert int(head.headers["content-length"]) > 0
    assert head.headers["content-type"] == get.headers["content-type"]
    if path != "/metrics" and get.status_code == 200:  # the metrics count what is asked
        assert head.headers["content-length"] == get.headers["content-length"]


def test_over_a_connection_the_next_answer_comes_right_behind(server):
    with httpx.Client(base_url=server.url) as connection:
        for path in ("/healthz", "/metrics", "/api/v1/models"):
            assert connection.head(path).status_code == 200
            assert connection.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/healthz", "GET, HEAD"),
        ("DELETE", "/api/v1/models/tiny", "GET, HEAD"),
        ("POST", f"/api/v1/traces/{'0' * 32}", "GET, HEAD"),
        ("POST", "/static/js/main.js", "GET, HEAD"),
        ("POST", "/openapi.json", "GET, HEAD"),
        ("HEAD", "/api/v1/trace", "POST"),
        ("GET", "/api/v1/trace", "POST"),
    ],
)
def test_what_is_allowed_is_told_truly(client, method, path, allow):
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)


def test_every_route_that_answers_get_answers_head(client):
    """None answers it by itself: two answers could differ."""
    routes = [route for route in iter_route_contexts(client.app.routes) if route.path]
    assert [route.path for route in routes if route.methods == {"HEAD"}] == []


def test_the_description_is_silent_about_it(client):
    document = client.get("/openapi.json").json()
    assert not any("head" in operations for operations in document["paths"].values())


def test_heads_are_counted_as_heads(client):
    labels = {"route": "/healthz", "method": "HEAD", "status": "200"}
    registry = client.app.state.services.metrics.registry
    before = registry.get_sample_value("headlight_requests_total", labels) or 0
    client.head("/healthz")
    assert registry.get_sample_value("headlight_requests_total", labels) == before + 1
