"""Every answer leaves with headers that keep the page safe."""

import httpx
import pytest

SAFE_HEADERS = {
    "content-security-policy": "default-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), ("GET", "/docs"), ("GET", "/nowhere"), ("POST", "/api/v1/trace")],
)
def test_every_answer_has_the_security_headers(client, method, path):
    response = client.request(method, path)
    assert {name: response.headers[name] for name in SAFE_HEADERS} == SAFE_HEADERS


def test_no_page_may_watch_or_listen_but_ours_may_copy(client):
    policy = client.get("/").headers["permissions-policy"]
    assert {"camera=()", "microphone=()", "geolocation=()"} <= set(policy.split(", "))
    assert "clipboard" not in policy


def test_tls_alone_is_asked_for_only_where_that_was_told(client, client_with):
    assert "strict-transport-security" not in client.get("/").headers
    answer = client_with(strict_transport_seconds=86_400).get("/nowhere")
    assert answer.headers["strict-transport-security"] == "max-age=86400"


def test_nobody_is_told_what_the_server_is_made_of(server):
    answer = httpx.get(f"{server.url}/")
    assert {"server", "x-powered-by"} & set(answer.headers) == set()
